//! What the meaning of source depends on: bounds, and what its free names stand for.

pub use flambeau_frontend::{Limits, NativeResolver, Resolver, Sugar, host_object};

/// The stages of compilation.
pub mod ssa {
    pub use flambeau_frontend::emit::StageText;
    pub use flambeau_frontend::ssa::Stage;
}
