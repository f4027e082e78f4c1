//! Printing of classes, interfaces, named tuples and enums.

use flambeau_ir::module::{AttributeKind, Class, Enumeration, Interface};
use flambeau_ir::types::TypeKind;
use flambeau_ir::{Symbol, Type};

use super::names::is_identifier;
use super::{Definition, File, Printer, ReceiverForm, Res, missing};

impl Printer<'_> {
    pub(super) fn type_definition(&mut self, file: &mut File, ty: Type) -> Res<()> {
        let name = self.qualified_name(Definition::Type(ty));
        let name = name.as_str().rsplit_once('.').map_or(name.as_str(), |(_, last)| last);
        let unit = self.unit;
        let unknown = || missing(&format!("`{}`", ty.annotation()));
        match ty.kind() {
            TypeKind::Tuple(_) => self.named_tuple(file, name, ty),
            TypeKind::Enum(..) => {
                let enumeration = unit.enumeration(ty).ok_or_else(unknown)?;
                self.enumeration(file, name, enumeration)
            }
            TypeKind::Interface(_) => {
                let interface = unit.interface(ty).ok_or_else(unknown)?;
                self.interface(file, name, interface);
                Ok(())
            }
            _ => {
                let class = unit.class(ty).ok_or_else(unknown)?;
                self.class(file, name, class)
            }
        }
    }

    fn named_tuple(&mut self, file: &mut File, name: &str, ty: Type) -> Res<()> {
        file.text.push_str(&format!("class {name}(NamedTuple):\n"));
        let Some(tuple) = ty.as_tuple() else { return Ok(()) };
        let fields = tuple.named.iter().flat_map(|n| &n.fields).zip(&tuple.elems);
        for (field, &elem) in fields {
            let elem = self.type_source(elem);
            file.text.push_str(&format!("  {} : {elem}\n", field.name));
        }
        Ok(())
    }

    fn enumeration(&mut self, file: &mut File, name: &str, enumeration: &Enumeration) -> Res<()> {
        file.text.push_str(&format!("class {name}(Enum):\n"));
        for (member, value) in &enumeration.members {
            let value = self.constant(value)?;
            file.text.push_str(&format!("  {member} = {value}\n"));
        }
        Ok(())
    }

    fn interface(&mut self, file: &mut File, name: &str, interface: &Interface) {
        let base = if interface.is_module { "ModuleInterface" } else { "Interface" };
        file.text.push_str(&format!("class {name}({base}):\n"));
        for (method, schema) in &interface.methods {
            let mut params = String::from("self");
            for arg in schema.args.iter().skip(1) {
                params.push_str(&format!(", {}: {}", arg.name, self.type_source(arg.ty)));
            }
            let result = self.type_source(schema.return_type());
            file.text.push_str(&format!("  def {method}({params}) -> {result}:\n    pass\n"));
        }
    }

    fn class(&mut self, file: &mut File, name: &str, class: &Class) -> Res<()> {
        let base = if class.is_module { "(Module)" } else { "" };
        file.text.push_str(&format!("class {name}{base}:\n"));
        let before = file.text.len();
        if class.is_module {
            let of = |kind| class.attributes.iter().filter(move |a| a.kind == kind).map(|a| a.name);
            let lists = [
                ("__parameters__", names(of(AttributeKind::Parameter))),
                ("__buffers__", names(of(AttributeKind::Buffer))),
            ];
            for (list, names) in lists {
                file.text.push_str(&format!("  {list} = [{names}]\n"));
            }
            for (list, hooks) in
                [("__forward_pre_hooks__", &class.pre_hooks), ("__forward_hooks__", &class.hooks)]
            {
                if !hooks.is_empty() {
                    file.text.push_str(&format!("  {list} = [{}]\n", names(hooks.iter().copied())));
                }
            }
        }
        for (i, attribute) in class.attributes.iter().enumerate() {
            let (name, ty) = (attribute.name.as_str(), self.type_source(attribute.ty));
            if is_identifier(name) {
                file.text.push_str(&format!("  {name} : {ty}\n"));
                continue;
            }
            if i == 0 {
                file.text.push_str("  __annotations__ = []\n");
            }
            file.text.push_str(&format!("  __annotations__[\"{name}\"] = {ty}\n"));
        }
        for (name, value) in &class.constants {
            let (ty, text) = (self.type_source(value.type_of()), self.constant(value)?);
            file.text.push_str(&format!("  {name} : Final[{ty}] = {text}\n"));
        }
        for &function in class.methods.values() {
            self.method(file, function)?;
        }
        for &function in class.static_methods.values() {
            file.text.push_str("  @staticmethod\n");
            self.method(file, function)?;
        }
        if file.text.len() == before {
            file.text.push_str("  pass\n");
        }
        Ok(())
    }
}

impl Printer<'_> {
    fn method(&mut self, file: &mut File, name: Symbol) -> Res<()> {
        let function = self.unit.function(name).cloned();
        let function = function.ok_or_else(|| missing(&format!("the method `{name}`")))?;
        self.function(file, &function, ReceiverForm::Typed, 1)
    }
}

/// Formats names as list elements: `"a", "b", `.
fn names(symbols: impl Iterator<Item = Symbol>) -> String {
    symbols.map(|s| format!("\"{s}\", ")).collect()
}
