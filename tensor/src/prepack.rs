//! Cache of data derived from the bytes of a storage, such as the packed panels of a weight. An entry is dropped when
//! the storage's version changes.
//!
//! Tensors are not declared constant. Bytes that are unchanged when they are seen the second time count as constant:
//! most tensors are used only once, and a packed copy would not pay for them.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;

/// Derived data of any type.
pub(crate) type Prepacked = Arc<dyn Any + Send + Sync>;

/// Key of an entry: the storage's version, and numbers whose meaning is up to the caller.
pub(crate) type PrepackKey = (u64, [usize; 8]);

/// At most one entry with its key. The entry is `None` until the key is seen the second time.
#[derive(Default)]
pub(crate) struct PrepackCache(Mutex<Option<(PrepackKey, Option<Prepacked>)>>);

impl PrepackCache {
    /// Returns the entry for the key, or calls `make` if the key was already seen. Returns `None` the first time, and
    /// if `make` does.
    pub(crate) fn get(&self, key: PrepackKey, make: impl FnOnce() -> Option<Prepacked>) -> Option<Prepacked> {
        let mut slot = self.0.lock();
        match &mut *slot {
            Some((known, Some(prepacked))) if *known == key => Some(prepacked.clone()),
            Some((known, prepacked)) if *known == key => {
                *prepacked = make();
                prepacked.clone()
            }
            other => {
                *other = Some((key, None));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_cached_at_the_second_use_and_dropped_on_change() {
        let cache = PrepackCache::default();
        let lookup = |version: u64, value: i32| {
            let prepacked = cache.get((version, [1; 8]), || Some(Arc::new(value)));
            prepacked.map(|prepacked| *prepacked.downcast::<i32>().unwrap())
        };
        assert_eq!(lookup(0, 1), None);
        assert_eq!(lookup(0, 2), Some(2));
        assert_eq!(lookup(0, 3), Some(2));
        assert_eq!(lookup(1, 4), None);
        assert_eq!(lookup(1, 5), Some(5));
    }
}
