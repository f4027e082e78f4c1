//! Finds the tensors of a pickle with their paths.
//!
//! The traversal uses an explicit stack and visits every container once, parents before children and children in order.
//! A tensor that occurs several times is reported at each occurrence, but the content of a shared container only once,
//! so the work is linear in the pickle. Paths are built only for tensors.

use crate::pickle::{CallId, Global, Pickle, PickleId, Value};

/// A tensor and a path to it.
pub(crate) struct TensorPath<R> {
    /// The call that creates it.
    pub(crate) call: CallId,
    /// The path, such as `layer.0.weight`; empty if the tensor is the root.
    pub(crate) path: String,
    /// The role in the object that holds it.
    pub(crate) role: R,
}

/// A value on a path, with the link to its parent.
struct Step {
    parent: Option<usize>,
    label: Label,
}

enum Label {
    Name(PickleId),
    Index(usize),
}

/// Returns all tensors below the root of `pickle`. `role_of` returns the role of attribute `name` of class `class`.
/// Items of a container inherit its role; the role of the root is `root`.
pub(crate) fn tensors<R: Copy>(
    pickle: &Pickle,
    root: R,
    mut role_of: impl FnMut(&str, &str) -> R,
) -> Vec<TensorPath<R>> {
    let mut found = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    let mut seen = vec![false; pickle.len()];
    let mut stack = vec![(pickle.root(), None, root)];
    while let Some((id, at, role)) = stack.pop() {
        if let Value::Call(call) = pickle.get(id)
            && is_tensor(pickle, call)
        {
            found.push(TensorPath { call, path: path(pickle, &steps, at), role });
            continue;
        }
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        let from = stack.len();
        let mut child = |id, label, role| {
            steps.push(Step { parent: at, label });
            stack.push((id, Some(steps.len() - 1), role));
        };
        match pickle.get(id) {
            Value::Tuple(span) => {
                pickle.tuple(span).iter().enumerate().for_each(|(n, &v)| child(v, Label::Index(n), role));
            }
            Value::List(list) => {
                pickle.list(list).iter().enumerate().for_each(|(n, &v)| child(v, Label::Index(n), role));
            }
            Value::Object(object) => {
                let object = pickle.object(object);
                let state = object.state.and_then(|state| pickle.as_dict(state)).unwrap_or_default();
                for &(k, v) in state {
                    let role = match (pickle.global(object.class), pickle.as_text(k)) {
                        (Global::Class(class), Some(name)) => role_of(class, name),
                        _ => role,
                    };
                    child(v, Label::Name(k), role);
                }
            }
            Value::Dict(_) | Value::Call(_) => match pickle.as_dict(id) {
                Some(items) => items.iter().for_each(|&(k, v)| child(v, Label::Name(k), role)),
                None => stack.extend(tagged(pickle, id).map(|inner| (inner, at, role))),
            },
            _ => {}
        }
        stack[from..].reverse();
    }
    found
}

/// Returns the content of a type-tagged list or dict: the first argument of the call. The second argument is the type.
fn tagged(pickle: &Pickle, id: PickleId) -> Option<PickleId> {
    let Value::Call(call) = pickle.get(id) else { return None };
    pickle.as_tuple(pickle.call(call).args)?.first().copied()
}

fn is_tensor(pickle: &Pickle, call: CallId) -> bool {
    pickle.global(pickle.call(call).function).rebuilds_tensor()
}

/// Returns the path of a step. Paths beyond a hundred links keep only their end and long names only their beginning, so
/// that the length of a path is bounded.
fn path(pickle: &Pickle, steps: &[Step], mut at: Option<usize>) -> String {
    const MAX_PATH_BYTES: usize = 100;
    const NAME: usize = 400;
    let short = |text: &str| match text.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    let mut parts = Vec::new();
    while let Some(step) = at.map(|i| &steps[i]) {
        parts.push(match step.label {
            Label::Name(key) => match pickle.get(key) {
                Value::Text(span) => short(pickle.text(span)),
                Value::Int(i) => i.to_string(),
                other => other.kind().to_owned(),
            },
            Label::Index(n) => n.to_string(),
        });
        at = step.parent;
        if parts.len() == MAX_PATH_BYTES {
            parts.push("…".into());
            break;
        }
    }
    parts.reverse();
    parts.join(".")
}
