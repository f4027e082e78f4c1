//! Exported programs: their content, expressions, structure of arguments, printed forms, errors.

pub use flambeau_export::build::{GraphBuilder, NumberMeta};
pub use flambeau_export::call::CallSpec;
pub use flambeau_export::container::{Container, FileLayout, Limits};
pub use flambeau_export::error::{ExportCode, ExportError};
pub use flambeau_export::expr::{Bindings, Expr, ExprError, ExprId, Exprs, Func, Number};
pub use flambeau_export::info::{OperatorUse, Port, node_count, operators, ports};
pub use flambeau_export::lower::{Metadata, NodeOrigin, ValueMeta};
pub use flambeau_export::read::{ReadOptions, file_layout, is_exported, is_exported_file, read, read_file};
pub use flambeau_export::tree::{Key, TreeMismatch, TreeSpec, TreeView};
pub use flambeau_export::write::{FileVersion, write, write_file};
pub use flambeau_export::{model, print, verify};
