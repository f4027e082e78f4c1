//! Reads the signature and the call graph of modules.

use super::{Reader, need, string, strings, union, unknown_tag};
use crate::json::{JsonReader, Res};
use crate::model::{Argument, InputSpec, ModuleCall, ModuleCallSignature, OutputSpec, Signature};

impl<'a> Reader<'a> {
    /// Reads the signature of a graph.
    pub(super) fn signature(&mut self, json: &mut JsonReader<'a>) -> Res<Signature> {
        let (mut inputs, mut outputs) = (None, None);
        json.object(|json, key| {
            match key {
                "input_specs" => inputs = Some(json.array(|json| self.input_spec(json))?),
                "output_specs" => outputs = Some(json.array(|json| self.output_spec(json))?),
                _ => self.keep_unknown("GraphSignature", json, key)?,
            }
            Ok(())
        })?;
        Ok(Signature { inputs: need(inputs, "input_specs")?, outputs: need(outputs, "output_specs")? })
    }

    fn input_spec(&mut self, json: &mut JsonReader<'a>) -> Res<InputSpec> {
        union(json, |json, tag| {
            Ok(match tag {
                "user_input" => InputSpec::UserInput { arg: self.only_argument(json)? },
                "parameter" => {
                    let (arg, target) = self.targeted(json, "parameter_name")?;
                    InputSpec::Parameter { arg, target }
                }
                "buffer" => self.buffer(json)?,
                "tensor_constant" => {
                    let (arg, target) = self.targeted(json, "tensor_constant_name")?;
                    InputSpec::TensorConstant { arg, target }
                }
                "custom_obj" => self.custom_obj_input(json)?,
                "token" => InputSpec::Token { arg: self.only_name(json)? },
                "constant_input" => self.constant_input(json)?,
                _ => return Err(unknown_tag(json, "input")),
            })
        })
    }

    fn output_spec(&mut self, json: &mut JsonReader<'a>) -> Res<OutputSpec> {
        union(json, |json, tag| {
            Ok(match tag {
                "user_output" => OutputSpec::UserOutput { arg: self.only_argument(json)? },
                "loss_output" => OutputSpec::LossOutput { arg: self.only_name(json)? },
                "token" => OutputSpec::Token { arg: self.only_name(json)? },
                "buffer_mutation" => {
                    let (arg, target) = self.targeted(json, "buffer_name")?;
                    OutputSpec::BufferMutation { arg, target }
                }
                "parameter_mutation" => {
                    let (arg, target) = self.targeted(json, "parameter_name")?;
                    OutputSpec::ParameterMutation { arg, target }
                }
                "gradient_to_parameter" => {
                    let (arg, target) = self.targeted(json, "parameter_name")?;
                    OutputSpec::GradientToParameter { arg, target }
                }
                "gradient_to_user_input" => {
                    let (arg, target) = self.targeted(json, "user_input_name")?;
                    OutputSpec::GradientToUserInput { arg, target }
                }
                "user_input_mutation" => {
                    let (arg, target) = self.targeted(json, "user_input_name")?;
                    OutputSpec::UserInputMutation { arg, target }
                }
                _ => return Err(unknown_tag(json, "output")),
            })
        })
    }

    /// Reads an object whose field `arg` is an argument.
    fn only_argument(&mut self, json: &mut JsonReader<'a>) -> Res<Argument> {
        let mut arg = None;
        json.object(|json, key| {
            match key {
                "arg" => arg = Some(self.argument(json)?),
                _ => self.keep_unknown("InputSpec", json, key)?,
            }
            Ok(())
        })?;
        need(arg, "arg")
    }

    /// Reads an object whose field `arg` is the name of a value.
    fn only_name(&mut self, json: &mut JsonReader<'a>) -> Res<String> {
        let mut arg = None;
        json.object(|json, key| {
            match key {
                "arg" => arg = Some(self.name(json)?),
                _ => self.keep_unknown("InputSpec", json, key)?,
            }
            Ok(())
        })?;
        need(arg, "arg")
    }

    /// Reads an object with the name of a value in `arg`, and what it stands for in `field`.
    fn targeted(&mut self, json: &mut JsonReader<'a>, field: &str) -> Res<(String, String)> {
        let (mut arg, mut target) = (None, None);
        json.object(|json, key| {
            match key {
                "arg" => arg = Some(self.name(json)?),
                _ if key == field => target = Some(string(json)?),
                _ => self.keep_unknown("InputSpec", json, key)?,
            }
            Ok(())
        })?;
        Ok((need(arg, "arg")?, need(target, field)?))
    }

    fn buffer(&mut self, json: &mut JsonReader<'a>) -> Res<InputSpec> {
        let (mut arg, mut target, mut persistent) = (None, None, None);
        json.object(|json, key| {
            match key {
                "arg" => arg = Some(self.name(json)?),
                "buffer_name" => target = Some(string(json)?),
                "persistent" => persistent = Some(json.bool()?),
                _ => self.keep_unknown("InputToBufferSpec", json, key)?,
            }
            Ok(())
        })?;
        Ok(InputSpec::Buffer {
            arg: need(arg, "arg")?,
            target: need(target, "buffer_name")?,
            persistent: need(persistent, "persistent")?,
        })
    }

    fn custom_obj_input(&mut self, json: &mut JsonReader<'a>) -> Res<InputSpec> {
        let (mut arg, mut target) = (None, None);
        json.object(|json, key| {
            match key {
                "arg" => arg = Some(self.custom_obj(json)?),
                "custom_obj_name" => target = Some(string(json)?),
                _ => self.keep_unknown("InputToCustomObjSpec", json, key)?,
            }
            Ok(())
        })?;
        Ok(InputSpec::CustomObj { arg: need(arg, "arg")?, target: need(target, "custom_obj_name")? })
    }

    fn constant_input(&mut self, json: &mut JsonReader<'a>) -> Res<InputSpec> {
        let (mut name, mut value) = (None, None);
        json.object(|json, key| {
            match key {
                "name" => name = Some(string(json)?),
                "value" => value = Some(self.argument(json)?),
                _ => self.keep_unknown("InputToConstantInputSpec", json, key)?,
            }
            Ok(())
        })?;
        Ok(InputSpec::ConstantInput { name: need(name, "name")?, value: need(value, "value")? })
    }

    /// Reads an entry of the call graph of modules.
    pub(super) fn module_call(&mut self, json: &mut JsonReader<'a>) -> Res<ModuleCall> {
        let (mut fqn, mut signature) = (None, None);
        json.object(|json, key| {
            match key {
                "fqn" => fqn = Some(string(json)?),
                "signature" => signature = json.optional(|json| self.call_signature(json))?,
                _ => self.keep_unknown("ModuleCallEntry", json, key)?,
            }
            Ok(())
        })?;
        Ok(ModuleCall { fqn: need(fqn, "fqn")?, signature })
    }

    fn call_signature(&mut self, json: &mut JsonReader<'a>) -> Res<ModuleCallSignature> {
        let (mut inputs, mut outputs, mut in_spec, mut out_spec) = (None, None, None, None);
        let mut forward_arg_names = None;
        json.object(|json, key| {
            match key {
                "inputs" => inputs = Some(json.array(|json| self.argument(json))?),
                "outputs" => outputs = Some(json.array(|json| self.argument(json))?),
                "in_spec" => in_spec = Some(string(json)?),
                "out_spec" => out_spec = Some(string(json)?),
                "forward_arg_names" => forward_arg_names = json.optional(strings)?,
                _ => self.keep_unknown("ModuleCallSignature", json, key)?,
            }
            Ok(())
        })?;
        Ok(ModuleCallSignature {
            inputs: need(inputs, "inputs")?,
            outputs: need(outputs, "outputs")?,
            in_spec: need(in_spec, "in_spec")?,
            out_spec: need(out_spec, "out_spec")?,
            forward_arg_names,
        })
    }
}
