//! What was worked out from the bytes of a storage, kept beside them until they change: the panels of a weight that
//! products multiply by again and again.
//!
//! Nothing says that bytes are constant, so the second time they are found as they were counts as that: most tensors
//! are used once, and are not worth a copy.

use std::any::Any;
use std::sync::Arc;

use parking_lot::Mutex;

/// Something worked out, whatever it is.
pub(crate) type Prepacked = Arc<dyn Any + Send + Sync>;

/// What was worked out from which bytes: the storage's version, and numbers of which whoever asks knows the meaning.
pub(crate) type PrepackKey = (u64, [usize; 8]);

/// One thing at most, and what it was worked out from.
#[derive(Default)]
pub(crate) struct PrepackCache(Mutex<Option<(PrepackKey, Option<Prepacked>)>>);

impl PrepackCache {
    /// What was kept for the key, or is made now because the key was asked for before; `None` the first time, or where
    /// it is not made.
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
    fn keeps_what_is_asked_for_twice_and_forgets_what_changed() {
        let cache = PrepackCache::default();
        let ask = |version: u64, value: i32| {
            let prepacked = cache.get((version, [1; 8]), || Some(Arc::new(value)));
            prepacked.map(|prepacked| *prepacked.downcast::<i32>().unwrap())
        };
        assert_eq!(ask(0, 1), None);
        assert_eq!(ask(0, 2), Some(2));
        assert_eq!(ask(0, 3), Some(2));
        assert_eq!(ask(1, 4), None);
        assert_eq!(ask(1, 5), Some(5));
    }
}
