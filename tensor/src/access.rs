//! Reaching the bytes of storages without a data race and without a deadlock.
//!
//! A kernel names every storage it touches and how ([`LockSet`]); the locks are then taken in the order of
//! addresses, a storage that is both read and written once, exclusively. What is under the locks is handed out as
//! typed pointers ([`Guards::ptr`]) to the loops of this crate, and as slices and strided views to everyone else
//! ([`read`], [`edit`]), where the borrow checker sees to it that nothing outlives the locks.
//!
//! A thread never asks for locks while it holds some: kernels call no kernels from inside `read` and `edit`.
//! (Debug builds check it.)
#![allow(unsafe_code, reason = "turns locked storages into pointers and slices")]

use std::cell::Cell;
use std::mem::MaybeUninit;

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

/// Shared locks of one storage or two, held until dropped: what most kernels need, without a list.
pub(crate) struct ReadGuards<'a>(&'a Storage, Option<&'a Storage>);

impl<'a> ReadGuards<'a> {
    /// Locks storages, perhaps the same, in their order.
    #[inline]
    pub(crate) fn new(a: &'a Storage, b: &'a Storage) -> ReadGuards<'a> {
        debug_assert_eq!(HELD.get(), 0, "invariant: locks are taken all at once");
        if cfg!(debug_assertions) {
            HELD.set(1);
        }
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

    /// As [`Guards::ptr`].
    #[inline]
    pub(crate) fn ptr<T: Element>(&self, meta: &Meta) -> *mut T::Raw {
        self.start(meta, T::DTYPE).cast()
    }

    /// As [`Guards::start`].
    #[inline]
    pub(crate) fn start(&self, meta: &Meta, dtype: DType) -> *mut u8 {
        assert!(self.holds(&meta.storage), "invariant: the storage is locked");
        start_of(meta, dtype)
    }
}

impl Drop for ReadGuards<'_> {
    #[inline]
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() - 1);
        }
        // SAFETY: the locks were taken when this was made.
        unsafe {
            if let Some(second) = self.1 {
                second.unlock_shared();
            }
            self.0.unlock_shared();
        }
    }
}

/// Shared locks of up to three storages, held until dropped, without a list: in the order of their addresses, each once.
pub(crate) struct ReadThree<'a>([Option<&'a Storage>; 3]);

impl<'a> ReadThree<'a> {
    /// Locks storages, some of them perhaps the same, in their order.
    pub(crate) fn new(mut storages: [&'a Storage; 3]) -> ReadThree<'a> {
        debug_assert_eq!(HELD.get(), 0, "invariant: locks are taken all at once");
        if cfg!(debug_assertions) {
            HELD.set(1);
        }
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
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() - 1);
        }
        for storage in self.0.iter().rev().flatten() {
            // SAFETY: the locks were taken when this was made.
            unsafe { storage.unlock_shared() };
        }
    }
}

/// Shared locks of the storages of any number of tensors, held until dropped: without a list where they are few.
pub(crate) enum ReadAll<'a> {
    Few(ReadThree<'a>),
    Many(Guards<'a>),
}

impl Locked for ReadAll<'_> {
    fn holds(&self, storage: &Storage) -> bool {
        match self {
            ReadAll::Few(guards) => guards.holds(storage),
            ReadAll::Many(guards) => guards.holds(storage),
        }
    }
}

impl<'a> ReadAll<'a> {
    /// Locks the storages, some of them perhaps the same, in their order.
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

/// The exclusive lock of a storage, and the shared one of another perhaps, held until dropped: what most writes need,
/// without a list.
pub(crate) struct WriteGuards<'a> {
    target: &'a Storage,
    source: Option<&'a Storage>,
}

impl<'a> WriteGuards<'a> {
    /// Locks storages, perhaps the same, in their order. Foreign bytes of the target are copied, which may fail.
    #[inline]
    pub(crate) fn new(target: &'a Storage, source: Option<&'a Storage>) -> Result<WriteGuards<'a>> {
        debug_assert_eq!(HELD.get(), 0, "invariant: locks are taken all at once");
        if cfg!(debug_assertions) {
            HELD.set(1);
        }
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
        start_of(meta, dtype)
    }
}

impl Drop for WriteGuards<'_> {
    #[inline]
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() - 1);
        }
        // SAFETY: the locks were taken when this was made.
        unsafe {
            if let Some(source) = self.source {
                source.unlock_shared();
            }
            self.target.unlock_exclusive();
        }
    }
}

/// Where the first element of a layout is, in a storage that is locked: the start of as many bytes as [`reach_of`] says. Panics
/// if the layout does not lie within the storage.
#[inline]
pub(crate) fn start_of(meta: &Meta, dtype: DType) -> *mut u8 {
    if meta.layout.numel() == 0 {
        return std::ptr::dangling_mut::<u128>().cast();
    }
    let end = meta.layout.storage_end().saturating_mul(dtype.size());
    assert!(end <= meta.storage.nbytes(), "invariant: a layout lies within its storage");
    // SAFETY: the storage is locked, and the layout, its first element with it, was just found to lie within it.
    unsafe { meta.storage.data().add(meta.layout.offset() as usize * dtype.size()) }
}

/// Bytes from the first element of a layout to behind its furthest.
#[inline]
pub(crate) fn reach_of(layout: &Layout, dtype: DType) -> usize {
    if layout.numel() == 0 { 0 } else { (layout.storage_end() - layout.offset() as usize) * dtype.size() }
}

/// Locks that are held, and what may be read under them: the one way from a locked storage to its elements.
pub(crate) trait Locked {
    /// Whether a storage is among those that are locked for reading.
    fn holds(&self, storage: &Storage) -> bool;

    /// The elements of a tensor from its first to its furthest. Panics if its storage is not locked, or ends before.
    #[inline]
    fn elements<'a, T: Element>(&'a self, meta: &'a Meta) -> &'a [T::Raw] {
        assert!(meta.layout.numel() == 0 || self.holds(&meta.storage), "invariant: the storage is locked");
        let len = reach_of(&meta.layout, T::DTYPE) / size_of::<T::Raw>();
        // SAFETY: pointer and length: `start_of` finds the layout to lie within the storage; all bytes of a storage are written
        // before it is shared, and any bytes are an element. Alignment: storages are aligned for every type of element, and
        // so is the place of nothing. Lifetime: the storage stays locked as long as `self` is borrowed, and its bytes stay
        // where they are. Aliasing: under a shared lock nothing is written.
        unsafe { std::slice::from_raw_parts(start_of(meta, T::DTYPE).cast::<T::Raw>(), len) }
    }

    /// As [`Locked::elements`], of a tensor of any dtype, as bytes.
    #[inline]
    fn bytes<'a>(&'a self, meta: &'a Meta, dtype: DType) -> &'a [u8] {
        assert!(meta.layout.numel() == 0 || self.holds(&meta.storage), "invariant: the storage is locked");
        // SAFETY: as for `elements`.
        unsafe { std::slice::from_raw_parts(start_of(meta, dtype), reach_of(&meta.layout, dtype)) }
    }
}

impl Locked for ReadGuards<'_> {
    #[inline]
    fn holds(&self, storage: &Storage) -> bool {
        self.0.ptr_eq(storage) || self.1.is_some_and(|second| second.ptr_eq(storage))
    }
}

impl Locked for ReadThree<'_> {
    #[inline]
    fn holds(&self, storage: &Storage) -> bool {
        self.0.iter().flatten().any(|held| held.ptr_eq(storage))
    }
}

/// The locks of a [`LockSet`], held until dropped.
pub struct Guards<'a> {
    wanted: SmallVec<[(&'a Storage, bool); 4]>,
    /// How many of them are locked.
    held: usize,
}

thread_local! {
    /// How many sets of guards this thread holds: more than one could deadlock.
    static HELD: Cell<u32> = const { Cell::new(0) };
}

impl<'a> LockSet<'a> {
    /// Nothing yet.
    #[inline]
    pub fn new() -> LockSet<'a> {
        LockSet { wanted: SmallVec::new() }
    }

    /// Adds a storage to be read.
    #[inline]
    pub fn read(&mut self, storage: &'a Storage) -> &mut Self {
        self.wanted.push((storage, false));
        self
    }

    /// Adds a storage to be written.
    #[inline]
    pub fn write(&mut self, storage: &'a Storage) -> &mut Self {
        self.wanted.push((storage, true));
        self
    }

    /// Takes the locks. Foreign bytes that are to be written are copied first, which may fail.
    pub fn lock(mut self) -> Result<Guards<'a>> {
        if self.wanted.len() > 1 {
            self.order();
        }
        debug_assert_eq!(HELD.get(), 0, "invariant: locks are taken all at once");
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() + 1);
        }
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

    /// Puts storages in order of addresses, each once, to be written if any of its names says so.
    fn order(&mut self) {
        let key = |wanted: &(&Storage, bool)| (wanted.0.address(), !wanted.1);
        if self.wanted.len() > 8 {
            self.wanted.sort_unstable_by_key(key);
        } else {
            // Few are in order after a few steps, without a call.
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
    /// A pointer to the first element of a layout in a storage.
    ///
    /// Valid for reads of the whole layout while the guards live, if the storage is in the set; for writes, if
    /// it was named for writing.
    #[inline]
    pub(crate) fn ptr<T: Element>(&self, meta: &Meta) -> *mut T::Raw {
        self.start(meta, T::DTYPE).cast()
    }

    /// As [`Guards::ptr`], for a dtype known at run time.
    #[inline]
    pub(crate) fn start(&self, meta: &Meta, dtype: DType) -> *mut u8 {
        assert!(self.wanted.iter().any(|(s, _)| s.ptr_eq(&meta.storage)), "invariant: the storage is locked");
        start_of(meta, dtype)
    }
}

impl Locked for Guards<'_> {
    #[inline]
    fn holds(&self, storage: &Storage) -> bool {
        self.wanted.iter().any(|(held, write)| !write && held.ptr_eq(storage))
    }
}

impl Drop for Guards<'_> {
    fn drop(&mut self) {
        if cfg!(debug_assertions) {
            HELD.set(HELD.get() - 1);
        }
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

/// A locked tensor's elements, to be read.
#[derive(Clone, Copy)]
pub struct Strided<'a, T: Element> {
    data: &'a [T::Raw],
    layout: &'a Layout,
}

/// A locked tensor's elements, to be written.
pub struct StridedMut<'a, T: Element> {
    data: &'a mut [T::Raw],
    layout: &'a Layout,
}

/// The position of an index in a layout, from its first element; checked.
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
    /// The layout. Its offset does not count for [`Strided::data`].
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// Memory from the first to the furthest element: element `i, j, ...` is at `i * stride[0] + ...`.
    #[inline]
    pub fn data(&self) -> &'a [T::Raw] {
        self.data
    }

    /// The element at an index. Panics outside the sizes.
    #[inline]
    pub fn get(&self, index: &[i64]) -> T {
        T::from_raw(self.data[position(self.layout, index)])
    }
}

impl<T: Element> StridedMut<'_, T> {
    /// The layout. Its offset does not count for [`StridedMut::data`].
    pub fn layout(&self) -> &Layout {
        self.layout
    }

    /// Memory from the first to the furthest element.
    #[inline]
    pub fn data(&mut self) -> &mut [T::Raw] {
        self.data
    }

    /// The element at an index. Panics outside the sizes.
    #[inline]
    pub fn get(&self, index: &[i64]) -> T {
        T::from_raw(self.data[position(self.layout, index)])
    }

    /// Sets the element at an index. Panics outside the sizes.
    #[inline]
    pub fn set(&mut self, index: &[i64], value: T) {
        self.data[position(self.layout, index)] = value.to_raw();
    }
}

/// Memory of a locked layout from its first element to its furthest: valid while the guards live, for writes if
/// the storage was named for writing.
fn span<T: Element>(start: *mut T::Raw, meta: &Meta) -> *mut [T::Raw] {
    let layout = &meta.layout;
    let len = if layout.numel() == 0 { 0 } else { layout.storage_end() - layout.offset() as usize };
    std::ptr::slice_from_raw_parts_mut(start, len)
}

/// That a tensor's dtype is the one its elements are wanted as.
fn check_dtype(op: &'static str, tensor: &Tensor, expected: DType) -> Result<()> {
    let found = tensor.dtype();
    if found == expected { Ok(()) } else { Err(TensorError::DTypeMismatch { op, expected, found }) }
}

/// What every function below begins with, compiled once: the tensor checked, its storage locked.
fn reading(tensor: &Tensor, dtype: DType) -> Result<(&Meta, ReadGuards<'_>)> {
    check_dtype("read", tensor, dtype)?;
    let meta = tensor.meta();
    Ok((meta, ReadGuards::one(&meta.storage)))
}

/// As [`reading`], to write: foreign bytes are copied first; the layout must not repeat locations.
fn writing(tensor: &Tensor, dtype: DType) -> Result<(&Meta, WriteGuards<'_>)> {
    check_dtype("edit", tensor, dtype)?;
    let meta = tensor.meta();
    meta.layout.check_writable()?;
    Ok((meta, WriteGuards::new(&meta.storage, None)?))
}

/// Inputs of a write to a tensor; those that share its storage are copied.
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

/// What tensors are at the moment their storages are locked: asked once, since another thread may change it after.
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

/// Several tensors of one dtype, locked for reading.
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

/// Reads one tensor under its lock.
pub fn read<T: Element, R>(tensor: &Tensor, f: impl FnOnce(Strided<'_, T>) -> R) -> Result<R> {
    let (meta, guards) = reading(tensor, T::DTYPE)?;
    Ok(f(Strided { data: guards.elements::<T>(meta), layout: &meta.layout }))
}

/// The first element of a tensor of this dtype that has one, under its lock.
#[inline]
pub(crate) fn first<T: Element>(tensor: &Tensor) -> T {
    element(tensor, 0)
}

/// An element of a tensor of this dtype and one dimension, under its lock, if there is one with this index.
#[inline]
pub(crate) fn element_of_row<T: Element>(row: &Tensor, index: i64) -> Option<T> {
    let (&[size], &[stride]) = (row.sizes(), row.strides()) else { return None };
    let index = if index < 0 { index + size } else { index };
    (0..size).contains(&index).then(|| element(row, (index * stride) as usize))
}

/// The element of a tensor of this dtype that lies so far behind the first one, under its lock. Panics if there is none.
#[inline]
fn element<T: Element>(tensor: &Tensor, behind: usize) -> T {
    let meta = tensor.meta();
    debug_assert!(tensor.dtype() == T::DTYPE, "invariant: its elements are of this type");
    T::from_raw(ReadGuards::one(&meta.storage).elements::<T>(meta)[behind])
}

/// Reads two tensors (of possibly different types) under their locks.
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

/// Reads several tensors of one type under their locks.
pub fn read_all<T: Element, R>(tensors: &[&Tensor], f: impl FnOnce(&[Strided<'_, T>]) -> R) -> Result<R> {
    let (metas, guards) = reading_all(tensors, T::DTYPE)?;
    let views: SmallVec<[Strided<'_, T>; 4]> = metas
        .into_iter()
        .map(|meta| Strided { data: guards.elements::<T>(meta), layout: &meta.layout })
        .collect();
    Ok(f(&views))
}

/// Writes one tensor under its lock and notes the write in the storage's version. The layout must not repeat locations.
pub fn edit<T: Element, R>(tensor: &Tensor, f: impl FnOnce(StridedMut<'_, T>) -> R) -> Result<R> {
    let (meta, guards) = writing(tensor, T::DTYPE)?;
    // SAFETY: pointer and length: `span` is of the layout, which lies within the storage. Aliasing: locked for writing, and
    // this is the only reference made. Lifetime: the guards live longer.
    let data = unsafe { &mut *span::<T>(guards.ptr::<T>(meta), meta) };
    let result = f(StridedMut { data, layout: &meta.layout });
    meta.storage.bump_version();
    Ok(result)
}

/// Writes one tensor while reading others, all under locks. An input that shares the storage written to is
/// copied first, so that what is read is what was there before.
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
    // SAFETY: as for `edit`: inputs, of which there are other references, lie in other storages.
    let data = unsafe { &mut *span::<T>(guards.ptr::<T>(meta), meta) };
    let result = f(StridedMut { data, layout: &meta.layout }, &views);
    meta.storage.bump_version();
    Ok(result)
}

/// A fresh row-major tensor, written by `f`.
///
/// # Safety
/// `f` writes every element.
#[inline]
pub(crate) unsafe fn make<T: Element>(
    layout: Layout,
    f: impl FnOnce(&mut [MaybeUninit<T::Raw>]),
) -> Result<Tensor> {
    assert!(layout.is_contiguous() && layout.offset() == 0, "invariant: fresh tensors are row-major");
    // SAFETY: the caller's word: no byte is read before it is written.
    let storage = unsafe { Storage::uninit(bytes_of(&layout, T::DTYPE)?)? };
    // SAFETY: the storage has as many bytes as these elements, is aligned for them, and is this function's alone.
    f(unsafe { std::slice::from_raw_parts_mut(storage.data().cast(), layout.numel()) });
    Ok(Tensor::from_parts(storage, T::DTYPE, layout))
}

/// As [`make`], of any dtype, as bytes.
///
/// # Safety
/// `f` writes every byte, and what it writes is elements of the dtype.
pub(crate) unsafe fn make_bytes(
    layout: Layout,
    dtype: DType,
    f: impl FnOnce(&mut [MaybeUninit<u8>]),
) -> Result<Tensor> {
    assert!(layout.is_contiguous() && layout.offset() == 0, "invariant: fresh tensors are row-major");
    let bytes = bytes_of(&layout, dtype)?;
    // SAFETY: the caller's word: no byte is read before it is written.
    let storage = unsafe { Storage::uninit(bytes)? };
    // SAFETY: the storage has so many bytes, and is this function's alone.
    f(unsafe { std::slice::from_raw_parts_mut(storage.data().cast(), bytes) });
    Ok(Tensor::from_parts(storage, dtype, layout))
}

/// As [`make`], of a function that reads other tensors of the same type under their locks.
///
/// # Safety
/// `f` writes every element.
pub(crate) unsafe fn make_with<T: Element>(
    sizes: &[i64],
    inputs: &[&Tensor],
    f: impl FnOnce(&mut [MaybeUninit<T::Raw>], &[Strided<'_, T>]),
) -> Result<Tensor> {
    let layout = Layout::contiguous(sizes)?;
    // SAFETY: the caller's word.
    read_all(inputs, |inputs| unsafe { make::<T>(layout, |out| f(out, inputs)) })?
}
