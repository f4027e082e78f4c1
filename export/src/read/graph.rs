//! Reads graphs and nodes.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Reader, need, occurs_twice, string};
use crate::json::{JsonReader, Res};
use crate::model::{ArgumentKind, GraphModel, NamedArgument, NodeMetadata, NodeModel};
use crate::{ExportCode, ExportError};

impl<'a> Reader<'a> {
    /// Reads a graph.
    pub(super) fn graph(&mut self, json: &mut JsonReader<'a>) -> Res<GraphModel> {
        let mut out = GraphModel::default();
        let (mut inputs, mut outputs, mut nodes, mut tensors) = (None, None, None, None);
        json.object(|json, key| {
            match key {
                "inputs" => inputs = Some(json.array(|json| self.argument(json))?),
                "outputs" => outputs = Some(json.array(|json| self.argument(json))?),
                "nodes" => nodes = Some(json.array(|json| self.named_node(json))?),
                "tensor_values" => {
                    let one = |r: &mut Self, json: &mut JsonReader<'a>| {
                        r.shared(json, |r| &mut r.tensors, |r, json| r.tensor_meta(json).map(Arc::new))
                    };
                    tensors = Some(self.map(json, one)?);
                }
                "sym_int_values" => out.sym_int_values = self.map(json, |r, json| r.sym_int(json))?,
                "sym_bool_values" => out.sym_bool_values = self.map(json, |r, json| r.sym_bool(json))?,
                "sym_float_values" => out.sym_float_values = self.map(json, |r, json| r.sym_float(json))?,
                "custom_obj_values" => {
                    out.custom_obj_values = self.map(json, |r, json| r.custom_obj(json))?
                }
                "is_single_tensor_return" => out.is_single_tensor_return = json.bool()?,
                _ => self.keep_unknown("Graph", json, key)?,
            }
            Ok(())
        })?;
        out.inputs = need(inputs, "inputs")?;
        out.outputs = need(outputs, "outputs")?;
        out.nodes = need(nodes, "nodes")?;
        out.tensor_values = need(tensors, "tensor_values")?;
        Ok(out)
    }

    /// Reads a node. An error gets the name of the node's first result, or its operator if it has none.
    fn named_node(&mut self, json: &mut JsonReader<'a>) -> Res<NodeModel> {
        let from = json.offset();
        self.node(json).map_err(|e| match e.node() {
            // The node of a subgraph is named, and the search for a name takes time in proportion to the node.
            Some(_) => e,
            None => e.at_node(name_at(json.text(), from).as_deref().unwrap_or("?")),
        })
    }

    fn node(&mut self, json: &mut JsonReader<'a>) -> Res<NodeModel> {
        let (mut target, mut inputs, mut outputs, mut metadata) = (None, None, None, None);
        let (mut is_hop_single_tensor_return, mut name) = (None, None);
        json.object(|json, key| {
            match key {
                "target" => target = Some(string(json)?),
                "inputs" => inputs = Some(json.array(|json| self.named_argument(json))?),
                "outputs" => outputs = Some(json.array(|json| self.argument(json))?),
                "metadata" => metadata = Some(self.node_metadata(json)?),
                "is_hop_single_tensor_return" => {
                    is_hop_single_tensor_return = json.optional(JsonReader::bool)?;
                }
                "name" => name = json.optional(string)?,
                _ => self.keep_unknown("Node", json, key)?,
            }
            Ok(())
        })?;
        Ok(NodeModel {
            target: need(target, "target")?,
            inputs: need(inputs, "inputs")?,
            outputs: need(outputs, "outputs")?,
            metadata: metadata.unwrap_or_default(),
            is_hop_single_tensor_return,
            name,
        })
    }

    /// Reads the metadata of a node. Keys, and strings that an earlier node has, are shared.
    fn node_metadata(&mut self, json: &mut JsonReader<'a>) -> Res<NodeMetadata> {
        let mut out = NodeMetadata::default();
        let metadata = Arc::make_mut(&mut out);
        json.object(|json, key| {
            let at = json.offset();
            let key = self.text(Cow::Borrowed(key));
            let text = json.string()?;
            let text = self.text(text);
            if metadata.insert(Arc::clone(&key), text).is_some() {
                return Err(occurs_twice(&key).at(at));
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// Returns a text that is shared with all equal ones.
    fn text(&mut self, text: Cow<'_, str>) -> Arc<str> {
        if let Some(known) = self.metadata_texts.get(&*text) {
            return Arc::clone(known);
        }
        let made: Arc<str> = text.into();
        self.metadata_texts.insert(Arc::clone(&made));
        made
    }

    fn named_argument(&mut self, json: &mut JsonReader<'a>) -> Res<NamedArgument> {
        let (mut name, mut arg, mut kind) = (None, None, None);
        json.object(|json, key| {
            match key {
                "name" => name = Some(string(json)?),
                "arg" => arg = Some(self.argument(json)?),
                "kind" => kind = json.optional(argument_kind)?.flatten(),
                _ => self.keep_unknown("NamedArgument", json, key)?,
            }
            Ok(())
        })?;
        Ok(NamedArgument { name: need(name, "name")?, arg: need(arg, "arg")?, kind })
    }
}

/// Reads the kind of an argument. 0 stands for an unknown kind.
fn argument_kind(json: &mut JsonReader<'_>) -> Res<Option<ArgumentKind>> {
    match json.int()? {
        0 => Ok(None),
        1 => Ok(Some(ArgumentKind::Positional)),
        2 => Ok(Some(ArgumentKind::Keyword)),
        other => {
            let message = format!("no kind of argument has the number {other}");
            Err(ExportError::new(ExportCode::Number, message).at(json.offset()))
        }
    }
}

/// Returns the name of the node at `from`, for an error: that of its first result, or its operator.
fn name_at(text: &str, from: usize) -> Option<String> {
    let mut json = JsonReader::new(text, 8);
    json.seek(from);
    let (mut name, mut target) = (None, None);
    // The node is broken somewhere; what was found before that is enough.
    let _ = json.object(|json, key| {
        match key {
            "target" => target = Some(string(json)?),
            "outputs" => {
                json.array(|json| {
                    json.object(|json, _| {
                        json.object(|json, key| {
                            if key == "name" && name.is_none() {
                                name = Some(string(json)?);
                                return Ok(());
                            }
                            json.skip().map(drop)
                        })
                    })
                })?;
            }
            _ => drop(json.skip()?),
        }
        Ok(())
    });
    name.or(target)
}
