//! Access to the bytes of storages without data races and without deadlocks.
//!
//! A kernel lists every storage that it accesses, for reading or for writing ([`LockSet`]). The locks are taken in the
//! order of addresses; a storage that is both read and written is locked once, exclusively. Code gets
//! the locked bytes as slices and strided views ([`read`], [`edit`]), whose lifetimes the borrow checker limits to that of the
//! locks.
//!
//! A thread never takes locks while it holds some: kernels call no kernels from inside `read` and `edit`. Debug builds
//! check this.
#![allow(unsafe_code, reason = "converts locked storages to pointers and slices")]

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use crate::create::bytes_of;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::storage::Storage;
use crate::tensor::{Meta, Tensor};

/// Storages to be locked, each for reading or for writing.
#[derive(Default)]
pub struct LockSet<'a> {
    wanted: SmallVec<[(&'a Storage, bool); 4]>,
}

/// Shared locks of one or two storages, held until dropped. Most kernels need no more, so there is no list.
pub(crate) struct ReadGuards<'a>(&'a Storage, Option<&'a Storage>);

impl<'a> ReadGuards<'a> {
    /// Locks two storages, which may be the same, in the order of their addresses.
    #[inline]
    pub(crate) fn new(a: &'a Storage, b: &'a Storage) -> ReadGuards<'a> {
        enter_lock_set();
        let (first, second) = match a.address().cmp(&b.address()) {
            std::cmp::Ordering::Less => (a, Some(b)),
            std::cmp::Ordering::Equal => (a, None),
            std::cmp::Ordering::Greater => (b, Some(a)),
        };
        first.lock_shared();
        if let Some(second) = second {
            second.lock_shared();
        }
        ReadGuards(first, second)
    }

    /// Locks one storage.
    #[inline]
    pub(crate) fn one(storage: &'a Storage) -> ReadGuards<'a> {
        ReadGuards::new(storage, storage)
    }
}

impl Drop for ReadGuards<'_> {
    #[inline]
    fn drop(&mut self) {
        leave_lock_set();
        // SAFETY: `new` took these locks.
        unsafe {
            if let Some(second) = self.1 {
                second.unlock_shared();
            }
            self.0.unlock_shared();
        }
    }
}

/// Shared locks of up to three storages, held until dropped. Each storage is locked once, in the order of addresses.
pub(crate) struct ReadThree<'a>([Option<&'a Storage>; 3]);

impl<'a> ReadThree<'a> {
    /// Locks storages, some of which may be the same, in the order of their addresses.
    pub(crate) fn new(mut storages: [&'a Storage; 3]) -> ReadThree<'a> {
        enter_lock_set();
        for (i, j) in [(0, 1), (1, 2), (0, 1)] {
            if storages[i].address() > storages[j].address() {
                storages.swap(i, j);
            }
        }
        let [a, b, c] = storages;
        let held = [Some(a), Some(b).filter(|b| !b.ptr_eq(a)), Some(c).filter(|c| !c.ptr_eq(b))];
        held.iter().flatten().for_each(|storage| storage.lock_shared());
        ReadThree(held)
    }
}

impl Drop for ReadThree<'_> {
    fn drop(&mut self) {
        leave_lock_set();
        for storage in self.0.iter().rev().flatten() {
            // SAFETY: `new` took these locks.
            unsafe { storage.unlock_shared() };
        }
    }
}

/// Shared locks of a few storages, held until dropped: as those of a [`LockSet`] that only reads, but constructed in
/// place.
pub(crate) struct ReadFew<'a> {
    /// Different storages in the order of addresses.
    held: SmallVec<[&'a Storage; 8]>,
}

impl<'a> ReadFew<'a> {
    /// Locks the storages of tensors, some of which may be the same, in the order of their addresses. Takes quadratic
    /// time.
    #[inline(always)]
    pub(crate) fn new(metas: &[&'a Meta]) -> ReadFew<'a> {
        enter_lock_set();
        let mut held: SmallVec<[&Storage; 8]> = SmallVec::new();
        for meta in metas {
            let storage = &meta.storage;
            let at = held.iter().position(|other: &&Storage| other.address() >= storage.address());
            match at {
                Some(at) if held[at].ptr_eq(storage) => {}
                Some(at) => held.insert(at, storage),
                None => held.push(storage),
            }
        }
        held.iter().for_each(|storage| storage.lock_shared());
        ReadFew { held }
    }
}

impl Drop for ReadFew<'_> {
    #[inline]
    fn drop(&mut self) {
        leave_lock_set();
        for storage in self.held.iter().rev() {
            // SAFETY: `new` took these locks.
            unsafe { storage.unlock_shared() };
        }
    }
}

// SAFETY: `new` takes a shared lock of every storage in `held`; only `drop` releases them.
unsafe impl Locked for ReadFew<'_> {
    #[inline]
    fn holds(&self, storage: &Storage) -> bool {
        self.held.iter().any(|held| held.ptr_eq(storage))
    }
}

/// Shared locks of the storages of any number of tensors, held until dropped; without a list for up to three.
pub(crate) enum ReadAll<'a> {
    Few(ReadThree<'a>),
    Many(Guards<'a>),
}

// SAFETY: the guards that it delegates to hold the locks.
unsafe impl Locked for ReadAll<'_> {
    fn holds(&self, storage: &Storage) -> bool {
        match self {
            ReadAll::Few(guards) => guards.holds(storage),
            ReadAll::Many(guards) => guards.holds(storage),
        }
    }
}

impl<'a> ReadAll<'a> {
    /// Locks the storages, some of which may be the same, in the order of their addresses.
    pub(crate) fn new(metas: &[&'a Meta]) -> Result<ReadAll<'a>> {
        if let [first, rest @ ..] = metas
            && rest.len() < 3
        {
            let nth = |i: usize| &rest.get(i).unwrap_or(first).storage;
            return Ok(ReadAll::Few(ReadThree::new([&first.storage, nth(0), nth(1)])));
        }
        let mut set = LockSet::new();
        for meta in metas {
            set.read(&meta.storage);
        }
        set.lock().map(ReadAll::Many)
    }
}

/// The exclusive lock of a storage, and optionally the shared lock of another, held until dropped. Most writes need no
/// more, so there is no list.
pub(crate) struct WriteGuards<'a> {
    target: &'a Storage,
    source: Option<&'a Storage>,
}

impl<'a> WriteGuards<'a> {
    /// Locks storages, which may be the same, in the order of their addresses. Foreign bytes of the target are copied.
    ///
    /// # Errors
    /// Returns an error if the target is protected from writes, or memory for the copy is exhausted.
    // Always inlined, as what makes slices of the guards: results in memory that are read in wider parts than they were written
    // in stall on store forwarding, which takes as long as the locks.
    #[inline(always)]
    pub(crate) fn new(target: &'a Storage, source: Option<&'a Storage>) -> Result<WriteGuards<'a>> {
        enter_lock_set();
        let source = source.filter(|source| !source.ptr_eq(target));
        match source {
            Some(source) if source.address() < target.address() => {
                source.lock_shared();
                target.lock_exclusive();
            }
            _ => {
                target.lock_exclusive();
                if let Some(source) = source {
                    source.lock_shared();
                }
            }
        }
        let guards = WriteGuards { target, source };
        // SAFETY: the exclusive lock was just taken.
        unsafe { target.make_owned()? };
        Ok(guards)
    }

    /// As [`Guards::ptr`].
    #[inline]
    pub(crate) fn ptr<T: Element>(&self, meta: &Meta) -> *mut T::Raw {
        self.start(meta, T::DTYPE).cast()
    }

    /// As [`Guards::start`].
    #[inline]
    pub(crate) fn start(&self, meta: &Meta, dtype: DType) -> *mut u8 {
        assert!(
            self.target.ptr_eq(&meta.storage) || self.source.is_some_and(|s| s.ptr_eq(&meta.storage)),
            "invariant: the storage is locked"
        );
        // SAFETY: the assertion above: these guards hold a lock of the storage.
        unsafe { span_of(meta, dtype).0 }
    }
}

impl Drop for WriteGuards<'_> {
    #[inline]
    fn drop(&mut self) {
        leave_lock_set();
        // SAFETY: `new` took these locks.
        unsafe {
            if let Some(source) = self.source {
                source.unlock_shared();
            }
            self.target.unlock_exclusive();
        }
    }
}

/// Returns the pointer to the first element of a layout in a storage, and the number of bytes from there to the end of
/// the furthest element, all of which are within the storage.
///
/// # Panics
/// Panics if the layout is not within the storage.
///
/// # Safety
/// If the layout has elements, the caller holds a lock of the storage, shared or exclusive, during the call.
#[inline]
unsafe fn span_of(meta: &Meta, dtype: DType) -> (*mut u8, usize) {
    let layout = &meta.layout;
    if layout.numel() == 0 {
        return (std::ptr::dangling_mut::<u128>().cast(), 0);
    }
    let end = layout.storage_end().saturating_mul(dtype.size());
    assert!(end <= meta.storage.nbytes(), "invariant: a layout lies within its storage");
    let start = layout.offset() as usize * dtype.size();
    // SAFETY: the caller holds a lock, so `data` does not change during the call; the assertion above found the layout,
    // with its first element, to be within the storage.
    (unsafe { meta.storage.data().add(start) }, end - start)
}

/// Held locks, and the elements that may be read under them: the only way from a locked storage to slices of its
/// elements.
///
/// # Safety
/// While [`holds`](Locked::holds) returns `true` for a storage, the guards hold its shared lock; they release it only when
/// they are dropped. The provided methods make slices under that lock.
pub(crate) unsafe trait Locked {
    /// Returns whether these guards hold the shared lock of a storage.
    fn holds(&self, storage: &Storage) -> bool;

    /// Returns the elements of a tensor from its first to its furthest.
    ///
    /// # Panics
    /// Panics if the tensor's storage is not locked, or its layout is not within the storage.
    #[inline]
    fn elements<'a, T: Element>(&'a self, meta: &'a Meta) -> &'a [T::Raw] {
        assert!(meta.layout.numel() == 0 || self.holds(&meta.storage), "invariant: the storage is locked");
        // SAFETY: the assertion above: these guards hold a lock of the storage.
        let (start, len) = unsafe { span_of(meta, T::DTYPE) };
        // SAFETY: pointer and length: `span_of` checks that the layout is within the storage. All bytes of a storage
        // are initialized before it is shared, and every byte pattern is an element. Alignment: storages are aligned
        // for every element type, and so is the dangling pointer of an empty tensor. Lifetime: the storage stays locked
        // while `self` is borrowed, and its bytes do not move. Aliasing: nothing is written under a shared lock.
        unsafe { std::slice::from_raw_parts(start.cast::<T::Raw>(), len / size_of::<T::Raw>()) }
    }

    /// As [`Locked::elements`] for a tensor of any dtype, as bytes.
    #[inline]
    fn bytes<'a>(&'a self, meta: &'a Meta, dtype: DType) -> &'a [u8] {
        assert!(meta.layout.numel() == 0 || self.holds(&meta.storage), "invariant: the storage is locked");
        // SAFETY: the assertion above: these guards hold a lock of the storage.
        let (start, len) = unsafe { span_of(meta, dtype) };
        // SAFETY: as for `elements`.
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

/// Held locks of which some are exclusive, and the bytes that may be written under them.
///
/// # Safety
/// While [`holds_exclusive`](Writes::holds_exclusive) returns `true` for a storage, the guards hold its exclusive lock, its
/// bytes have been made writable ([`Storage::make_owned`]), and [`Locked::holds`] returns `false` for it.
pub(crate) unsafe trait Writes: Locked {
    /// Returns whether these guards hold the exclusive lock of a storage.
    fn holds_exclusive(&self, storage: &Storage) -> bool;

    /// Returns the bytes of a tensor from its first to its furthest element, for writing, and access to other bytes
    /// under the same locks.
    ///
    /// # Panics
    /// Panics if the tensor's storage is not locked for writing, or its layout is not within the storage.
    #[inline(always)]
    fn target<'a>(&'a mut self, meta: &'a Meta, dtype: DType) -> (&'a mut [u8], OtherBytes<'a, Self>) {
        assert!(
            meta.layout.numel() == 0 || self.holds_exclusive(&meta.storage),
            "invariant: the storage is locked for writing"
        );
        // SAFETY: the assertion above: these guards hold the exclusive lock of the storage.
        let (start, len) = unsafe { span_of(meta, dtype) };
        let others =
            OtherBytes { guards: self, target: &meta.storage, bytes: start.addr()..start.addr() + len };
        // SAFETY: pointer, length and lifetime: as for `elements`. Aliasing: the storage is locked exclusively, this
        // method borrows the guards exclusively, and `others` returns no byte of this range.
        (unsafe { std::slice::from_raw_parts_mut(start, len) }, others)
    }
}

/// All bytes under held locks but those of one target.
pub(crate) struct OtherBytes<'a, G: ?Sized> {
    guards: &'a G,
    target: &'a Storage,
    /// Addresses of the target's bytes.
    bytes: Range<usize>,
}

impl<'a, G: Writes + ?Sized> OtherBytes<'a, G> {
    /// Returns the bytes of a tensor from its first to its furthest element.
    ///
    /// # Panics
    /// Panics if the tensor's storage is not locked, its layout is not within the storage, or shares bytes with the
    /// target.
    #[inline(always)]
    pub(crate) fn bytes(&self, meta: &'a Meta, dtype: DType) -> &'a [u8] {
        let is_target = meta.storage.ptr_eq(self.target);
        assert!(
            meta.layout.numel() == 0 || is_target || self.guards.holds(&meta.storage),
            "invariant: an input is locked"
        );
        // SAFETY: the assertion above: the guards hold a shared lock of the storage, or the target's exclusive one.
        let (start, len) = unsafe { span_of(meta, dtype) };
        let at = start.addr();
        assert!(
            len == 0 || !is_target || at + len <= self.bytes.start || self.bytes.end <= at,
            "invariant: an input shares no byte with the target"
        );
        // SAFETY: pointer, length and lifetime: as for `elements`. Aliasing: nothing is written under a shared lock.
        // Under the exclusive lock only the target's bytes are written, and these are others.
        unsafe { std::slice::from_raw_parts(start, len) }
    }
}

// SAFETY: `new` takes a shared lock of the source, which is not the target; only `drop` releases it.
unsafe impl Locked for WriteGuards<'_> {
    #[inline]
    fn holds(&self, storage: &Storage) -> bool {
        self.source.is_some_and(|source| source.ptr_eq(storage))
    }
}

// SAFETY: `new` takes the exclusive lock of the target and makes its bytes writable; only `drop` releases it. The source
// is another storage.
unsafe impl Writes for WriteGuards<'_> {
    #[inline]
    fn holds_exclusive(&self, storage: &Storage) -> bool {
        self.target.ptr_eq(storage)
    }
}

// SAFETY: `LockSet::lock` takes the exclusive lock of every storage that is to be written and makes its bytes writable;
// only `drop` releases it. Every storage has one entry in the set, so the set holds no shared lock of it.
unsafe impl Writes for Guards<'_> {
    #[inline]
    fn holds_exclusive(&self, storage: &Storage) -> bool {
        self.wanted.iter().any(|(held, write)| *write && held.ptr_eq(storage))
    }
}

// SAFETY: `new` takes shared locks of both storages; only `drop` releases them.
unsafe impl Locked for ReadGuards<'_> {
    #[inline]
    fn holds(&self, storage: &Storage) -> bool {
        self.0.ptr_eq(storage) || self.1.is_some_and(|second| second.ptr_eq(storage))
    }
}

// SAFETY: `new` takes a shared lock of every storage in the array; only `drop` releases them.
unsafe impl Locked for ReadThree<'_> {
    #[inline]
    fn holds(&self, storage: &Storage) -> bool {
        self.0.iter().flatten().any(|held| held.ptr_eq(storage))
    }
}

/// The locks of a [`LockSet`], held until dropped.
pub struct Guards<'a> {
    wanted: SmallVec<[(&'a Storage, bool); 4]>,
    /// Number of locks taken.
    held: usize,
}

thread_local! {
    /// Number of sets of guards that this thread holds; more than one could deadlock.
    static HELD_LOCK_SETS: Cell<u32> = const { Cell::new(0) };
}

/// In debug builds, checks that this thread holds no guards, and that it takes a set of them now.
#[inline(always)]
fn enter_lock_set() {
    if cfg!(debug_assertions) {
        assert_eq!(HELD_LOCK_SETS.replace(1), 0, "invariant: locks are taken all at once");
    }
}

/// Ends [`enter_lock_set`].
#[inline(always)]
fn leave_lock_set() {
    if cfg!(debug_assertions) {
        HELD_LOCK_SETS.set(HELD_LOCK_SETS.get() - 1);
    }
}

impl<'a> LockSet<'a> {
    /// Makes an empty set.
    #[inline]
    pub fn new() -> LockSet<'a> {
        LockSet { wanted: SmallVec::new() }
    }

    /// Adds a storage for reading.
    #[inline]
    pub fn read(&mut self, storage: &'a Storage) -> &mut Self {
        self.wanted.push((storage, false));
        self
    }

    /// Adds a storage for writing.
    #[inline]
    pub fn write(&mut self, storage: &'a Storage) -> &mut Self {
        self.wanted.push((storage, true));
        self
    }

    /// Takes the locks. Foreign bytes of storages that are to be written are copied.
    ///
    /// # Errors
    /// Returns an error if a storage that is to be written is protected, or memory for a copy is exhausted.
    pub fn lock(mut self) -> Result<Guards<'a>> {
        if self.wanted.len() > 1 {
            self.order();
        }
        enter_lock_set();
        let mut guards = Guards { wanted: self.wanted, held: 0 };
        for at in 0..guards.wanted.len() {
            let (storage, write) = guards.wanted[at];
            if write {
                storage.lock_exclusive();
            } else {
                storage.lock_shared();
            }
            guards.held += 1;
            if write {
                // SAFETY: the exclusive lock was just taken.
                unsafe { storage.make_owned()? };
            }
        }
        Ok(guards)
    }

    /// Sorts the storages by address and merges duplicates; a storage is to be written if one of its entries is.
    fn order(&mut self) {
        let key = |wanted: &(&Storage, bool)| (wanted.0.address(), !wanted.1);
        if self.wanted.len() > 8 {
            self.wanted.sort_unstable_by_key(key);
        } else {
            // Insertion sort: for a few entries cheaper than a call of the general sort.
            for end in 1..self.wanted.len() {
                let mut at = end;
                while at > 0 && key(&self.wanted[at - 1]) > key(&self.wanted[at]) {
                    self.wanted.swap(at - 1, at);
                    at -= 1;
                }
            }
        }
        self.wanted.dedup_by_key(|(storage, _)| storage.address());
    }
}

impl Guards<'_> {
    /// Returns the pointer to the first element of a layout in a storage of the set.
    ///
    /// The pointer is valid for reads of the whole layout while the guards live, and for writes if the storage was
    /// added for writing.
    #[inline]
    pub(crate) fn ptr<T: Element>(&self, meta: &Meta) -> *mut T::Raw {
        self.start(meta, T::DTYPE).cast()
    }

    /// As [`Guards::ptr`], for a dtype known only at run time.
    #[inline]
    pub(crate) fn start(&self, meta: &Meta, dtype: DType) -> *mut u8 {
        assert!(self.wanted.iter().any(|(s, _)| s.ptr_eq(&meta.storage)), "invariant: the storage is locked");
        // SAFETY: the assertion above; all locks of the set are taken before the guards are returned.
        unsafe { span_of(meta, dtype).0 }
    }
}

// SAFETY: `LockSet::lock` takes a shared lock of every storage that is only to be read; only `drop` releases it.
unsafe impl Locked for Guards<'_> {
    #[inline]
    fn holds(&self, storage: &Storage) -> bool {
        self.wanted.iter().any(|(held, write)| !write && held.ptr_eq(storage))
    }
}

impl Drop for Guards<'_> {
    fn drop(&mut self) {
        leave_lock_set();
        for &(storage, write) in self.wanted[..self.held].iter().rev() {
            // SAFETY: these are exactly the locks taken.
            unsafe {
                if write {
                    storage.unlock_exclusive();
                } else {
                    storage.unlock_shared();
                }
            }
        }
    }
}

/// The elements of a locked tensor, for reading.
#[derive(Clone, Copy)]
pub struct Strided<'a, T: Element> {
    data: &'a [T::Raw],
    layout: &'a Layout,
}

/// The elements of a locked tensor, for writing.
pub struct StridedMut<'a, T: Element> {
    data: &'a mut [T::Raw],
    layout: &'a Layout,
}

/// Returns the position of an index in a layout, relative to its first element.
///
/// # Panics
/// Panics if the index is out of range.
#[inline]
fn position(layout: &Layout, index: &[i64]) -> usize {
    assert_eq!(index.len(), layout.rank(), "index and tensor differ in rank");
    let mut position = 0;
    for ((&i, &size), &stride) in index.iter().zip(layout.sizes()).zip(layout.strides()) {
        assert!(i >= 0 && i < size, "index {i} outside a dimension of {size}");
        position += i * stride;
    }
    position as usize
}

impl<'a, T: Element> Strided<'a, T> {
    /// Returns the layout. Its offset does not apply to [`Strided::data`].
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Returns the memory from the first to the furthest element: element `i, j, ...` is at `i * stride[0] + ...`.
    #[inline]
    pub fn data(&self) -> &'a [T::Raw] {
        self.data
    }

    /// Returns the element at an index.
    ///
    /// # Panics
    /// Panics if the index is out of range.
    #[inline]
    pub fn get(&self, index: &[i64]) -> T {
        T::from_raw(self.data[position(self.layout, index)])
    }
}

impl<T: Element> StridedMut<'_, T> {
    /// Returns the layout. Its offset does not apply to [`StridedMut::data`].
    pub fn layout(&self) -> &Layout {
        self.layout
    }

    /// Returns the memory from the first to the furthest element.
    #[inline]
    pub fn data(&mut self) -> &mut [T::Raw] {
        self.data
    }

    /// Returns the element at an index.
    ///
    /// # Panics
    /// Panics if the index is out of range.
    #[inline]
    pub fn get(&self, index: &[i64]) -> T {
        T::from_raw(self.data[position(self.layout, index)])
    }

    /// Sets the element at an index.
    ///
    /// # Panics
    /// Panics if the index is out of range.
    #[inline]
    pub fn set(&mut self, index: &[i64], value: T) {
        self.data[position(self.layout, index)] = value.to_raw();
    }
}

/// Returns the memory of a locked layout from its first element to its furthest: valid while the guards live, for
/// writes if the storage was locked for writing.
fn span<T: Element>(start: *mut T::Raw, meta: &Meta) -> *mut [T::Raw] {
    let layout = &meta.layout;
    let len = if layout.numel() == 0 { 0 } else { layout.storage_end() - layout.offset() as usize };
    std::ptr::slice_from_raw_parts_mut(start, len)
}

/// Returns an error unless a tensor has the dtype `expected`.
fn check_dtype(op: &'static str, tensor: &Tensor, expected: DType) -> Result<()> {
    let found = tensor.dtype();
    if found == expected { Ok(()) } else { Err(TensorError::DTypeMismatch { op, expected, found }) }
}

/// Checks a tensor's dtype and locks its storage. Not generic over the element type, so it is compiled once.
fn reading(tensor: &Tensor, dtype: DType) -> Result<(&Meta, ReadGuards<'_>)> {
    check_dtype("read", tensor, dtype)?;
    let meta = tensor.meta();
    Ok((meta, ReadGuards::one(&meta.storage)))
}

/// As [`reading`], for writing: foreign bytes are copied first; the layout must not have overlapping elements.
fn writing(tensor: &Tensor, dtype: DType) -> Result<(&Meta, WriteGuards<'_>)> {
    check_dtype("edit", tensor, dtype)?;
    let meta = tensor.meta();
    meta.layout.check_writable()?;
    Ok((meta, WriteGuards::new(&meta.storage, None)?))
}

/// Returns the inputs of a write to a tensor; an input that shares the target's storage is replaced by a copy.
fn inputs_of(target: &Tensor, inputs: &[&Tensor], dtype: DType) -> Result<SmallVec<[Tensor; 4]>> {
    inputs
        .iter()
        .map(|input| {
            check_dtype("edit", input, dtype)?;
            let shares = input.storage().ptr_eq(target.storage());
            Ok(if shares { Tensor::copy_contiguous(input)? } else { (*input).clone() })
        })
        .collect()
}

/// The metadata of tensors, read once before their storages are locked, because another thread may change it later.
type Metas<'a> = SmallVec<[&'a Meta; 4]>;

/// As [`writing`], with inputs locked for reading.
fn writing_with<'a>(
    target: &'a Tensor,
    inputs: &'a [Tensor],
    dtype: DType,
) -> Result<(&'a Meta, Metas<'a>, Guards<'a>)> {
    check_dtype("edit", target, dtype)?;
    let meta = target.meta();
    meta.layout.check_writable()?;
    let metas: Metas<'a> = inputs.iter().map(|input| input.meta()).collect();
    let mut set = LockSet::new();
    set.write(&meta.storage);
    for input in &metas {
        if input.storage.ptr_eq(&meta.storage) {
            return Err(TensorError::PartialOverlap);
        }
        set.read(&input.storage);
    }
    Ok((meta, metas, set.lock()?))
}

/// Locks several tensors of one dtype for reading.
fn reading_all<'a>(tensors: &[&'a Tensor], dtype: DType) -> Result<(Metas<'a>, Guards<'a>)> {
    let mut metas = Metas::new();
    let mut set = LockSet::new();
    for tensor in tensors {
        check_dtype("read", tensor, dtype)?;
        let meta = tensor.meta();
        set.read(&meta.storage);
        metas.push(meta);
    }
    Ok((metas, set.lock()?))
}

/// Calls `f` with the elements of a tensor, under the lock of its storage.
///
/// # Errors
/// Returns [`TensorError::DTypeMismatch`] if the tensor's dtype is not `T`'s.
pub fn read<T: Element, R>(tensor: &Tensor, f: impl FnOnce(Strided<'_, T>) -> R) -> Result<R> {
    let (meta, guards) = reading(tensor, T::DTYPE)?;
    Ok(f(Strided { data: guards.elements::<T>(meta), layout: &meta.layout }))
}

/// Returns the first element of a non-empty tensor of `T`'s dtype, under its lock.
#[inline]
pub(crate) fn first<T: Element>(tensor: &Tensor) -> T {
    element(tensor, 0)
}

/// Returns an element of a one-dimensional tensor of `T`'s dtype, under its lock; `None` if the index is out of range.
/// A negative index counts from the end.
#[inline]
pub(crate) fn element_of_row<T: Element>(row: &Tensor, index: i64) -> Option<T> {
    let (&[size], &[stride]) = (row.sizes(), row.strides()) else { return None };
    let index = if index < 0 { index + size } else { index };
    (0..size).contains(&index).then(|| element(row, (index * stride) as usize))
}

/// Returns the element `behind` positions after the first one, of a tensor of `T`'s dtype, under its lock.
///
/// # Panics
/// Panics if there is no such element.
#[inline]
fn element<T: Element>(tensor: &Tensor, behind: usize) -> T {
    let meta = tensor.meta();
    debug_assert!(tensor.dtype() == T::DTYPE, "invariant: the tensor has this element type");
    T::from_raw(ReadGuards::one(&meta.storage).elements::<T>(meta)[behind])
}

/// Calls `f` with the elements of two tensors (of possibly different types), under the locks of their storages.
///
/// # Errors
/// Returns [`TensorError::DTypeMismatch`] if a tensor's dtype is not that of its type parameter.
pub fn read2<A: Element, B: Element, R>(
    a: &Tensor,
    b: &Tensor,
    f: impl FnOnce(Strided<'_, A>, Strided<'_, B>) -> R,
) -> Result<R> {
    check_dtype("read", a, A::DTYPE)?;
    check_dtype("read", b, B::DTYPE)?;
    let (a, b) = (a.meta(), b.meta());
    let guards = ReadGuards::new(&a.storage, &b.storage);
    let (x, y) = (guards.elements::<A>(a), guards.elements::<B>(b));
    Ok(f(Strided { data: x, layout: &a.layout }, Strided { data: y, layout: &b.layout }))
}

/// Calls `f` with the elements of several tensors of one type, under the locks of their storages.
///
/// # Errors
/// Returns [`TensorError::DTypeMismatch`] if a tensor's dtype is not `T`'s.
pub fn read_all<T: Element, R>(tensors: &[&Tensor], f: impl FnOnce(&[Strided<'_, T>]) -> R) -> Result<R> {
    let (metas, guards) = reading_all(tensors, T::DTYPE)?;
    let views: SmallVec<[Strided<'_, T>; 4]> = metas
        .into_iter()
        .map(|meta| Strided { data: guards.elements::<T>(meta), layout: &meta.layout })
        .collect();
    Ok(f(&views))
}

/// Calls `f` with the elements of a tensor for writing, under the lock of its storage, and increments the storage's
/// version.
///
/// # Errors
/// Returns [`TensorError::DTypeMismatch`] if the tensor's dtype is not `T`'s, [`TensorError::InternalOverlap`] if
/// elements of its layout overlap, and an error if the storage is protected or memory is exhausted.
pub fn edit<T: Element, R>(tensor: &Tensor, f: impl FnOnce(StridedMut<'_, T>) -> R) -> Result<R> {
    let (meta, guards) = writing(tensor, T::DTYPE)?;
    // SAFETY: pointer and length: `span` covers the layout, which is within the storage. Alignment: storages are aligned for
    // every element type. All bytes of a shared storage are initialized. Aliasing: the storage is locked for writing, and
    // this is the only reference to its bytes. Lifetime: the guards outlive the reference.
    let data = unsafe { &mut *span::<T>(guards.ptr::<T>(meta), meta) };
    let result = f(StridedMut { data, layout: &meta.layout });
    meta.storage.bump_version();
    Ok(result)
}

/// Calls `f` with a tensor for writing and others for reading, under the locks of all storages. An input that shares
/// the target's storage is copied first, so that reads return the values before the write.
///
/// # Errors
/// As for [`edit`], also for the dtypes of the inputs.
pub fn edit_with<T: Element, S: Element, R>(
    target: &Tensor,
    inputs: &[&Tensor],
    f: impl FnOnce(StridedMut<'_, T>, &[Strided<'_, S>]) -> R,
) -> Result<R> {
    let inputs = inputs_of(target, inputs, S::DTYPE)?;
    let (meta, metas, guards) = writing_with(target, &inputs, T::DTYPE)?;
    let views: SmallVec<[Strided<'_, S>; 4]> = metas
        .into_iter()
        .map(|meta| Strided { data: guards.elements::<S>(meta), layout: &meta.layout })
        .collect();
    // SAFETY: as for `edit`; the inputs, to which `views` has references, have other storages.
    let data = unsafe { &mut *span::<T>(guards.ptr::<T>(meta), meta) };
    let result = f(StridedMut { data, layout: &meta.layout }, &views);
    meta.storage.bump_version();
    Ok(result)
}

/// Makes a fresh row-major tensor, whose elements `f` writes.
///
/// # Safety
/// `f` writes every element.
#[inline]
pub(crate) unsafe fn make<T: Element>(
    layout: Layout,
    f: impl FnOnce(&mut [MaybeUninit<T::Raw>]),
) -> Result<Tensor> {
    assert!(layout.is_contiguous() && layout.offset() == 0, "invariant: fresh tensors are row-major");
    // SAFETY: the caller's contract: every byte is written by `f`, before the tensor is returned.
    let storage = unsafe { Storage::uninit(bytes_of(&layout, T::DTYPE)?)? };
    // SAFETY: the storage has the bytes of `numel` elements and is aligned for them. This function has the only handle,
    // so the slice is not aliased.
    f(unsafe { std::slice::from_raw_parts_mut(storage.data().cast(), layout.numel()) });
    Ok(Tensor::from_parts(storage, T::DTYPE, layout))
}

/// Makes a fresh tensor of any dtype, whose bytes `f` writes.
///
/// # Errors
/// Returns the error of `f`, or an error if memory is exhausted.
///
/// # Panics
/// Panics if the layout is not dense.
///
/// # Safety
/// `f` writes every byte unless it fails, and the bytes are elements of the dtype.
#[inline]
pub(crate) unsafe fn make_bytes(
    layout: Layout,
    dtype: DType,
    f: impl FnOnce(&Layout, &mut [MaybeUninit<u8>]) -> Result<()>,
) -> Result<Tensor> {
    let dense = layout.is_contiguous() || layout.is_non_overlapping_and_dense();
    assert!(dense && layout.offset() == 0, "invariant: fresh tensors have no gaps");
    let bytes = bytes_of(&layout, dtype)?;
    // SAFETY: the caller's contract: every byte is written by `f`, before the tensor is returned.
    let storage = unsafe { Storage::uninit(bytes)? };
    // SAFETY: the storage has `bytes` bytes, and this function has the only handle.
    f(&layout, unsafe { std::slice::from_raw_parts_mut(storage.data().cast(), bytes) })?;
    Ok(Tensor::from_parts(storage, dtype, layout))
}

/// As [`make`], for a function that reads other tensors of the same type under their locks.
///
/// # Safety
/// `f` writes every element.
pub(crate) unsafe fn make_with<T: Element>(
    sizes: &[i64],
    inputs: &[&Tensor],
    f: impl FnOnce(&mut [MaybeUninit<T::Raw>], &[Strided<'_, T>]),
) -> Result<Tensor> {
    let layout = Layout::contiguous(sizes)?;
    // SAFETY: the caller's contract.
    read_all(inputs, |inputs| unsafe { make::<T>(layout, |out| f(out, inputs)) })?
}
