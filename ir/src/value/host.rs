//! Opaque values: objects of the embedding program, and random generators.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flambeau_tensor::Device;
use parking_lot::Mutex;

use crate::types::Type;

/// An object of the embedding program.
pub trait HostObject: Any + Send + Sync + fmt::Debug {
    /// Returns the object's type in programs.
    fn type_of(&self) -> Type {
        Type::PY_OBJECT
    }

    /// Returns the object as `Any`, for downcasts in the host.
    fn as_any(&self) -> &dyn Any;
}

/// A shared host object in one pointer.
#[derive(Clone)]
pub struct HostValue(Arc<Box<dyn HostObject>>);

impl HostValue {
    /// Wraps a host object as a value.
    #[must_use]
    pub fn new(object: impl HostObject) -> Self {
        Self(Arc::new(Box::new(object)))
    }

    /// Returns the object.
    #[must_use]
    pub fn get(&self) -> &dyn HostObject {
        &**self.0
    }

    /// Returns the object if it is a `T`.
    #[must_use]
    pub fn downcast<T: HostObject>(&self) -> Option<&T> {
        self.get().as_any().downcast_ref()
    }

    /// Returns the identity of the object, unique while the object exists.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

/// A random generator: a seed, and an engine whose type the consumer of random numbers chooses.
#[derive(Clone)]
pub struct Generator(Arc<GeneratorData>);

struct GeneratorData {
    device: Device,
    seed: AtomicU64,
    engine: Mutex<Option<Box<dyn AnyEngine>>>,
    /// Makes the engine instead of the seed, unless it returns `None`.
    source: Option<Box<Source>>,
    /// Whether the next engine is made from the seed although there is a source.
    is_reseeded: AtomicBool,
}

type Source = dyn Fn() -> Option<Box<dyn AnyEngine>> + Send + Sync;

/// A type-erased engine that can be cloned.
trait AnyEngine: Send {
    fn copied(&self) -> Box<dyn AnyEngine>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<E: Clone + Send + 'static> AnyEngine for E {
    fn copied(&self) -> Box<dyn AnyEngine> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Generator {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(device: Device, seed: u64) -> Self {
        let seed = AtomicU64::new(seed);
        Self(Arc::new(GeneratorData {
            device,
            seed,
            engine: Mutex::new(None),
            source: None,
            is_reseeded: AtomicBool::new(false),
        }))
    }

    /// Creates a generator whose engine `source` returns when the first number is drawn, for state that another library owns.
    /// If it returns `None`, the engine is made from the seed.
    #[must_use]
    pub fn with_source<E: Clone + Send + 'static>(
        device: Device,
        seed: u64,
        source: impl Fn() -> Option<E> + Send + Sync + 'static,
    ) -> Self {
        let source = move || source().map(|engine| Box::new(engine) as Box<dyn AnyEngine>);
        let seed = AtomicU64::new(seed);
        Self(Arc::new(GeneratorData {
            device,
            seed,
            engine: Mutex::new(None),
            source: Some(Box::new(source)),
            is_reseeded: AtomicBool::new(false),
        }))
    }

    /// Takes the engine if numbers were drawn from an engine of type `E` or the generator was reseeded; `make` creates the engine of
    /// a seed from which nothing was drawn. The next draw makes a new one.
    #[must_use]
    pub fn take_engine<E: Clone + Send + 'static>(&self, make: impl FnOnce(u64) -> E) -> Option<E> {
        let mut engine = self.0.engine.lock();
        let is_reseeded = self.0.is_reseeded.swap(false, Ordering::Relaxed);
        match engine.take() {
            Some(engine) => (*engine).as_any().downcast_ref::<E>().cloned(),
            None => is_reseeded.then(|| make(self.seed())),
        }
    }

    /// Returns the generator's device.
    #[must_use]
    pub fn device(&self) -> Device {
        self.0.device
    }

    /// Returns the seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.0.seed.load(Ordering::Relaxed)
    }

    /// Sets the seed and discards the engine's state.
    pub fn reseed(&self, seed: u64) {
        let mut engine = self.0.engine.lock();
        self.0.seed.store(seed, Ordering::Relaxed);
        self.0.is_reseeded.store(true, Ordering::Relaxed);
        *engine = None;
    }

    /// Calls `draw` with the engine. If there is no engine of type `E` yet, `make` creates one from the seed.
    #[expect(clippy::missing_panics_doc, reason = "an engine of another type was just replaced")]
    pub fn with_engine<E: Clone + Send + 'static, R>(
        &self,
        make: impl FnOnce(u64) -> E,
        draw: impl FnOnce(&mut E) -> R,
    ) -> R {
        let mut slot = self.0.engine.lock();
        if slot.is_none() {
            *slot = self.engine_of_source();
        }
        if !slot.as_ref().is_some_and(|engine| (**engine).as_any().is::<E>()) {
            *slot = Some(Box::new(make(self.seed())));
        }
        let engine = slot.as_mut().and_then(|engine| (**engine).as_any_mut().downcast_mut());
        draw(engine.expect("invariant: the engine is of this type now"))
    }

    /// Returns an independent generator with a copy of the state, which draws the same numbers as this one.
    #[must_use]
    pub fn fork(&self) -> Self {
        let engine = self.0.engine.lock();
        let copy = engine.as_ref().map(|engine| (**engine).copied()).or_else(|| self.engine_of_source());
        let seed = AtomicU64::new(self.seed());
        Self(Arc::new(GeneratorData {
            device: self.0.device,
            seed,
            engine: Mutex::new(copy),
            source: None,
            is_reseeded: AtomicBool::new(false),
        }))
    }

    fn engine_of_source(&self) -> Option<Box<dyn AnyEngine>> {
        let is_reseeded = self.0.is_reseeded.load(Ordering::Relaxed);
        self.0.source.as_ref().filter(|_| !is_reseeded).and_then(|source| source())
    }

    /// Returns the identity of the generator, unique while the generator exists.
    #[must_use]
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}
