//! Metadata of views: their bases, and how they came about.
//!
//! A write through a view is a new version of its base, in whose history all other views of the base follow it. PyTorch
//! does not follow views that an operator returns together with others, and views that were made while gradients were
//! disabled: it refuses a recorded write to their memory, either when it happens or when such a view is read afterwards
//! (`CreationMeta` in its sources). Views of such views inherit that. The texts of the errors are PyTorch's.

use super::ViewRecord;
use super::history;
use super::region::Geometry;
use crate::error::KernelError;
use flambeau_ir::FunctionSchema;
use flambeau_tensor::Tensor;
use std::sync::Arc;

/// How a view came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ViewOrigin {
    /// It has the history of its base.
    #[default]
    Recorded,
    /// One of the views that an operator returned.
    Several,
    /// Made while gradients were disabled: it has no history.
    Unrecorded,
}

impl ViewOrigin {
    /// Returns the origin of a view of a tensor that is a view of origin `of`.
    pub(super) fn after(self, of: Option<ViewOrigin>) -> ViewOrigin {
        if self == ViewOrigin::Recorded { of.unwrap_or_default() } else { self }
    }
}

/// The operator that returned a recorded view, and the position of the view among its results.
#[derive(Clone, Copy, Debug)]
pub(super) struct ViewSource {
    /// The name of the operator without namespace, or that of PyTorch's node.
    name: &'static str,
    is_node: bool,
    output: usize,
}

impl ViewSource {
    pub(super) fn of(schema: &FunctionSchema, record: Option<ViewRecord>, output: usize) -> ViewSource {
        match record {
            Some(ViewRecord::Several(node)) => ViewSource { name: node, is_node: true, output },
            _ => ViewSource { name: schema.name.base(), is_node: false, output },
        }
    }

    /// Returns the name of PyTorch's node: `SelectBackward0` for `select`.
    fn node(self) -> String {
        if self.is_node {
            return self.name.to_owned();
        }
        let mut name = String::new();
        for part in self.name.split('_') {
            let mut chars = part.chars();
            name.extend(chars.next().map(|first| first.to_ascii_uppercase()));
            name.push_str(chars.as_str());
        }
        name + "Backward0"
    }
}

/// Knowledge about a new view.
#[derive(Clone, Debug, Default)]
pub(super) struct NewView {
    pub(super) origin: ViewOrigin,
    /// `None` if the view was made while gradients were disabled.
    pub(super) source: Option<ViewSource>,
    /// See [`ViewMeta::positions`].
    pub(super) positions: Option<Arc<(Geometry, Geometry)>>,
}

/// The metadata of a view.
#[derive(Clone, Debug)]
pub(super) struct ViewMeta {
    pub(super) base: Tensor,
    /// Id of the base's node when the view's gradient edge was computed; 0 if the base had none.
    pub(super) base_node: u64,
    pub(super) origin: ViewOrigin,
    /// `None` also if the base required no gradient then.
    pub(super) source: Option<ViewSource>,
    /// The version of the memory when the view was made.
    pub(super) version: u64,
    /// If elements of the base share memory: geometries of the base and of the view in other memory, in which those of
    /// the base do not. The view has the elements of the base that have the same positions there.
    pub(super) positions: Option<Arc<(Geometry, Geometry)>>,
}

/// Returns geometries of the base of a tensor and of the tensor as [`ViewMeta::positions`] has them; `None` if those of the
/// tensors serve.
///
/// # Errors
/// Returns the error of a layout that is too large.
pub(super) fn positions(tensor: &Tensor) -> Result<Option<Arc<(Geometry, Geometry)>>, KernelError> {
    if let Some(view) = history::view_meta(tensor) {
        return Ok(view.positions);
    }
    let own = Geometry::of(tensor);
    if !own.overlaps() {
        return Ok(None);
    }
    let own = own.contiguous()?;
    Ok(Some(Arc::new((own.clone(), own))))
}

/// Refuses a recorded write to a view that has no history afterwards.
///
/// # Errors
/// Returns an input error if so.
pub(super) fn check_write(view: &ViewMeta) -> Result<(), KernelError> {
    match view.origin {
        ViewOrigin::Recorded => Ok(()),
        _ => Err(refused(view, "is being")),
    }
}

/// Refuses a recorded read of a view whose memory was written after it was made, if the view does not follow its base.
///
/// # Errors
/// Returns an input error if so.
pub(super) fn check_read(tensor: &Tensor, view: &ViewMeta) -> Result<(), KernelError> {
    let follows = view.origin == ViewOrigin::Recorded || view.version == tensor.version();
    if follows || history::gradient_edge(&view.base).is_none() {
        return Ok(());
    }
    Err(refused(view, "its base or another view of its base has been"))
}

fn refused(view: &ViewMeta, modified: &str) -> KernelError {
    let unrecorded = view.origin == ViewOrigin::Unrecorded;
    let subject = match view.source {
        Some(source) if unrecorded => format!(
            "Output {} of {} is a view of a view which was created in no_grad mode and {modified} modified inplace \
             with grad mode enabled.",
            source.output,
            source.node()
        ),
        Some(source) => {
            format!(
                "Output {} of {} is a view and {modified} modified inplace.",
                source.output,
                source.node()
            )
        }
        None => {
            format!(
                "A view was created in no_grad mode and {modified} modified inplace with grad mode enabled."
            )
        }
    };
    let why = if unrecorded {
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both \
         the view and the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or \
         both outside (if you want the inplace to be tracked)."
    } else {
        "This view is the output of a function that returns multiple views. Such functions do not allow the output views \
         to be modified inplace. You should replace the inplace operation by an out-of-place one."
    };
    KernelError::input(format!("{subject} {why}"))
}
