//! Settings of compilation: bounds, and the resolution of free names.

pub use flambeau_frontend::{FrontendLimits, NativeResolver, Resolver, Sugar, host_function, host_object};

/// The stages of compilation.
pub mod ssa {
    pub use flambeau_frontend::emit::StageText;
    pub use flambeau_frontend::ssa::SsaStage;
}
