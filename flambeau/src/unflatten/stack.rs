//! Module stacks of nodes, as the metadata of exported programs states them.
//!
//! The text `nn_module_stack` of a node lists the modules whose methods were running when PyTorch recorded the node, outermost first:
//! `key,path,class` joined by `;`. The path is the module's name in the program, `blocks.0.mlp`. Calls of one module have
//! different suffixes `@1`, `@2` of the key, or of the path.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::rc::Rc;

/// A call of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Path of the module.
    pub(super) path: String,
    /// Number of the call: 0 for the first.
    pub(super) call: String,
    /// Qualified name of the module's class.
    pub(super) class: String,
}

/// The modules around a node, outermost first, without the program itself.
pub(super) type Stack = Rc<[Frame]>;

/// The key that PyTorch writes for nodes that it inserts itself, such as assertions on sizes.
const UNKNOWN: &str = "_empty_nn_module_stack_from_metadata_hook";

/// Stacks by their text. Most nodes share their text with a neighbour.
#[derive(Default)]
pub(super) struct Stacks(HashMap<String, Stack, FxBuildHasher>);

impl Stacks {
    /// Returns the stack that a text states, or `None` if it states that the modules are not known. A frame is left out if its module
    /// is not below that of the frame before it: such a module cannot be called through the other one.
    pub(super) fn get(&mut self, text: &str) -> Option<Stack> {
        if text.starts_with(UNKNOWN) {
            return None;
        }
        if let Some(known) = self.0.get(text) {
            return Some(Rc::clone(known));
        }
        let mut frames: Vec<Frame> = Vec::new();
        for entry in text.split(';') {
            let Some(frame) = frame(entry) else { continue };
            let is_below = frames.last().is_none_or(|outer| below(&frame.path, &outer.path).is_some());
            if is_below {
                frames.push(frame);
            }
        }
        let stack: Stack = frames.into();
        self.0.insert(text.to_owned(), Rc::clone(&stack));
        Some(stack)
    }
}

/// Returns the path of a module relative to a module above it; `None` if it is not below it.
pub(super) fn below<'p>(path: &'p str, above: &str) -> Option<&'p str> {
    if above.is_empty() {
        return Some(path).filter(|path| !path.is_empty());
    }
    path.strip_prefix(above)?.strip_prefix('.')
}

/// Reads an entry of a stack; `None` for the program itself.
fn frame(entry: &str) -> Option<Frame> {
    let [key, path, class] = parts(entry)?;
    let (path, call) = match (path.split_once('@'), key.rsplit_once('@')) {
        (Some((path, call)), _) => (path, call),
        (None, Some((_, call))) => (path, call),
        (None, None) => (path, ""),
    };
    // Without a receiver named `self`, PyTorch states paths relative to the local variable: `L['s'].blocks.0`.
    let path = match path.strip_prefix("L[").and_then(|rest| rest.split_once(']')) {
        Some((_, rest)) => rest.trim_start_matches('.'),
        None => path,
    };
    if path.is_empty() {
        return None;
    }
    Some(Frame { path: path.to_owned(), call: call.to_owned(), class: class.to_owned() })
}

/// Returns the three parts of an entry. Commas within parentheses and brackets do not separate parts.
fn parts(entry: &str) -> Option<[&str; 3]> {
    let mut parts = [""; 3];
    let (mut count, mut start, mut depth) = (0, 0, 0usize);
    for (at, c) in entry.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                *parts.get_mut(count)? = entry.get(start..at)?.trim();
                (count, start) = (count + 1, at + 1);
            }
            _ => {}
        }
    }
    *parts.get_mut(count)? = entry.get(start..)?.trim();
    (count == 2).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<String> {
        let stack = Stacks::default().get(text).expect("the stack is known");
        stack.iter().map(|f| format!("{}@{} {}", f.path, f.call, f.class)).collect()
    }

    #[test]
    fn stacks_name_modules_and_calls() {
        let text = "L__self__,,m.Net;L__self___a@2,a,m.A;L__self___a.0,a.0,m.List[int, str]";
        assert_eq!(calls(text), ["a@2 m.A", "a.0@ m.List[int, str]"]);
        assert_eq!(calls("140,,m.Net;141,a@1,m.A"), ["a@1 m.A"]);
    }

    #[test]
    fn modules_that_are_not_below_the_caller_are_left_out() {
        assert_eq!(calls("k,a,m.A;k,b,m.B;k,a.c,m.C"), ["a@ m.A", "a.c@ m.C"]);
        assert_eq!(calls("k,ab,m.A;k,a,m.B"), ["ab@ m.A"]);
        assert!(Stacks::default().get(&format!("{UNKNOWN},,None")).is_none());
        assert!(calls("").is_empty() && calls("a,b").is_empty() && calls("a,b,c,d").is_empty());
    }
}
