//! Where functions become kernels.
//!
//! Every kernel of this crate is made by [`kernel`], and every computation that the variants of an operator share by
//! [`compute`] or [`change`]. Without the feature `kernels` these three drop the function: they are generic over it, so it is
//! checked and no code is made for it or for what only it calls. Where a constant table holds functions by pointer, its rows are
//! taken through [`computing!`], which puts a stub in their place in such a build.
//!
//! An operator states a kernel in either build, so passes that ask whether it can run decide alike. All other facts (schema,
//! effects, aliasing, shapes, samples, rules) never go through a kernel.

#![cfg_attr(not(feature = "kernels"), allow(unused_variables, reason = "computations are dropped"))]

use flambeau_exec::kernel::Site;
use flambeau_exec::{Kernel, KernelCx, KernelError, KernelResult};
use flambeau_tensor::Tensor;
use std::sync::Arc;

/// A computation as the variants of an operator share it: one object, so that what follows from it is compiled once.
pub(crate) type Compute<T> = Arc<dyn Fn(&KernelCx<'_>) -> Result<T, KernelError> + Send + Sync>;

/// What changes a tensor, shared as [`Compute`] is.
pub(crate) type Change = Arc<dyn Fn(&KernelCx<'_>, &Tensor) -> KernelResult + Send + Sync>;

/// A kernel of a standard operator.
pub(crate) fn kernel(run: impl Fn(&mut KernelCx<'_>) -> KernelResult + Send + Sync + 'static) -> Kernel {
    #[cfg(feature = "kernels")]
    return Kernel::new(run);
    #[cfg(not(feature = "kernels"))]
    Kernel::new(|cx| Err(absent(cx)))
}

/// A computation to be shared.
pub(crate) fn compute<T: 'static>(
    f: impl Fn(&KernelCx<'_>) -> Result<T, KernelError> + Send + Sync + 'static,
) -> Compute<T> {
    #[cfg(feature = "kernels")]
    return Arc::new(f);
    #[cfg(not(feature = "kernels"))]
    Arc::new(|cx| Err(absent(cx)))
}

/// A change to be shared.
pub(crate) fn change(f: impl Fn(&KernelCx<'_>, &Tensor) -> KernelResult + Send + Sync + 'static) -> Change {
    #[cfg(feature = "kernels")]
    return Arc::new(f);
    #[cfg(not(feature = "kernels"))]
    Arc::new(|cx, _| Err(absent(cx)))
}

/// The rows of a constant table, one of whose fields is a function that computes: `computing!(ROWS.2)`. A function that
/// takes other arguments than [`stub`] has a stub of its own: `computing!(ROWS.2, lacking)`.
///
/// With the feature `kernels` it expands to `ROWS`, without to a copy that the compiler makes, so that the table is not in
/// the program:
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
        computing!($table.$field, $crate::compute::stub)
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

/// Stands for a function in the rows of [`computing!`].
#[cfg(not(feature = "kernels"))]
pub(crate) fn stub(cx: &KernelCx<'_>) -> Result<Tensor, KernelError> {
    Err(absent(cx))
}

/// The error of a call in a build without kernels.
#[cold]
#[cfg_attr(feature = "kernels", expect(dead_code, reason = "kernels are there"))]
fn absent(cx: &KernelCx<'_>) -> KernelError {
    let name = match cx.site() {
        Site::Node(graph, node) => graph.op_name(node).to_string(),
        Site::Schema(schema) => schema.full_name(),
    };
    KernelError::unsupported(format!("`{name}` cannot run: flambeau was built without the feature `kernels`"))
}
