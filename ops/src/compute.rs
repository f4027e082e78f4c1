//! Construction of kernels, in one place so that they can be compiled out.
//!
//! Every kernel of this crate is created by [`kernel`], and every computation shared by variants of an operator by
//! [`compute`] or [`change`]. Without the feature `kernels` these three functions drop their argument. They are generic
//! over it, so it is type-checked, but no code is generated for it or for functions that only it calls. Rows of
//! constant tables with function pointers are accessed through [`computing!`], which replaces the functions by a stub
//! in such a build.
//!
//! An operator has a kernel facet in either build, so passes that check whether it can run decide alike. All other
//! facts (schema, effects, aliasing, shapes, samples, rules) are independent of kernels.

#![cfg_attr(not(feature = "kernels"), allow(unused_variables, reason = "computations are dropped"))]

#[cfg(not(feature = "kernels"))]
use flambeau_exec::kernel::CallOrigin;
use flambeau_exec::{Kernel, KernelCx, KernelError, KernelResult};
use flambeau_tensor::Tensor;
use std::sync::Arc;

/// A computation shared by variants of an operator. It is a trait object, so code derived from it is compiled once.
pub(crate) type Compute<T> = Arc<dyn Fn(&KernelCx<'_>) -> Result<T, KernelError> + Send + Sync>;

/// A modification of a tensor, shared like [`Compute`].
pub(crate) type Change = Arc<dyn Fn(&KernelCx<'_>, &Tensor) -> KernelResult + Send + Sync>;

/// Creates a kernel of a standard operator.
pub(crate) fn kernel(run: impl Fn(&mut KernelCx<'_>) -> KernelResult + Send + Sync + 'static) -> Kernel {
    #[cfg(feature = "kernels")]
    return Kernel::new(run);
    #[cfg(not(feature = "kernels"))]
    lacking::kernel()
}

/// Creates a shared computation.
pub(crate) fn compute<T: 'static>(
    f: impl Fn(&KernelCx<'_>) -> Result<T, KernelError> + Send + Sync + 'static,
) -> Compute<T> {
    #[cfg(feature = "kernels")]
    return Arc::new(f);
    #[cfg(not(feature = "kernels"))]
    lacking::compute()
}

/// Creates a shared modification.
pub(crate) fn change(f: impl Fn(&KernelCx<'_>, &Tensor) -> KernelResult + Send + Sync + 'static) -> Change {
    #[cfg(feature = "kernels")]
    return Arc::new(f);
    #[cfg(not(feature = "kernels"))]
    lacking::change()
}

/// Returns the rows of a constant table, one of whose fields is a function: `computing!(ROWS.2)`. If its signature
/// differs from that of `lacking::stub`, a stub must be given: `computing!(ROWS.2, lacking)`.
///
/// With the feature `kernels` it expands to `ROWS`. Without, it expands to a copy evaluated at compile time, so that
/// the table and its functions are not linked:
///
/// ```text
/// &const {
///     let mut rows = [ROWS[0]; ROWS.len()];
///     let mut i = 0;
///     while i < rows.len() {
///         rows[i] = ROWS[i];
///         rows[i].2 = lacking;
///         i += 1;
///     }
///     rows
/// }
/// ```
macro_rules! computing {
    ($table:ident . $field:tt) => {
        computing!($table.$field, $crate::compute::lacking::stub)
    };
    ($table:ident . $field:tt, $stub:expr) => {{
        #[cfg(feature = "kernels")]
        {
            $table
        }
        #[cfg(not(feature = "kernels"))]
        {
            &const {
                let mut rows = [$table[0]; $table.len()];
                let mut i = 0;
                while i < rows.len() {
                    rows[i] = $table[i];
                    rows[i].$field = $stub;
                    i += 1;
                }
                rows
            }
        }
    }};
}

pub(crate) use computing;

/// Replacements of computations in a build without kernels. They do not depend on the type of the dropped function, so
/// they are compiled once.
#[cfg(not(feature = "kernels"))]
pub(crate) mod lacking {
    use super::{Arc, CallOrigin, Change, Compute, Kernel, KernelCx, KernelError, Tensor};

    pub(super) fn kernel() -> Kernel {
        Kernel::new(|cx| Err(error(cx)))
    }

    pub(super) fn compute<T: 'static>() -> Compute<T> {
        Arc::new(|cx| Err(error(cx)))
    }

    pub(super) fn change() -> Change {
        Arc::new(|cx, _| Err(error(cx)))
    }

    /// Replaces the functions in the rows of [`super::computing!`].
    pub(crate) fn stub(cx: &KernelCx<'_>) -> Result<Tensor, KernelError> {
        Err(error(cx))
    }

    /// Returns the error of a call.
    #[cold]
    fn error(cx: &KernelCx<'_>) -> KernelError {
        let name = match cx.site() {
            CallOrigin::Node(graph, node) => graph.op_name(node).to_string(),
            CallOrigin::Schema(schema) => schema.full_name(),
        };
        KernelError::unsupported(format!(
            "`{name}` cannot run: flambeau was built without the feature `kernels`"
        ))
    }
}
