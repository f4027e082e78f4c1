//! Formats of the files that commands write. The extension of the file's name selects the format; a name with another
//! extension is an error of the command line, before any work is done.

use crate::output::usage;
use anyhow::Result;
use flambeau::{Error, Fault};
use std::path::Path;

/// A format of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// A zip archive: of a module, or of a state dict.
    Archive,
    /// An exported program.
    Exported,
    /// Tensors by name.
    Safetensors,
}

impl FileFormat {
    const ALL: [FileFormat; 3] = [FileFormat::Archive, FileFormat::Exported, FileFormat::Safetensors];

    fn extensions(self) -> &'static [&'static str] {
        match self {
            FileFormat::Archive => &["pt", "pth", "bin", "zip"],
            FileFormat::Exported => &["pt2"],
            FileFormat::Safetensors => &["safetensors"],
        }
    }

    /// Returns the extensions and the content, for messages.
    fn description(self) -> String {
        let extensions: Vec<String> = self.extensions().iter().map(|e| format!("`.{e}`")).collect();
        let content = match self {
            FileFormat::Archive => "an archive",
            FileFormat::Exported => "an exported program",
            FileFormat::Safetensors => "tensors",
        };
        format!("{} ({content})", extensions.join(", "))
    }

    /// Returns the format of a file with this name, one of `written`.
    ///
    /// # Errors
    /// An error of the command line that lists the formats, if the extension is of none of them.
    pub(crate) fn of(path: &Path, written: &[FileFormat]) -> Result<FileFormat> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let found = written.iter().find(|format| format.extensions().contains(&extension));
        found.copied().ok_or_else(|| {
            let formats: Vec<String> = written.iter().map(|format| format.description()).collect();
            let text = format!(
                "{}: the extension of the output selects its format, one of {}",
                path.display(),
                formats.join("; ")
            );
            let mut error = Error::new(Fault::Misuse, "X0003", text);
            if matches!(extension, "ir" | "py") {
                error.help =
                    Some("`flambeau print` writes graphs (`--exact`) and source (`--as code`)".to_owned());
            }
            usage(error)
        })
    }

    /// Returns the format of a file with this name.
    ///
    /// # Errors
    /// As [`FileFormat::of`].
    pub(crate) fn of_any(path: &Path) -> Result<FileFormat> {
        FileFormat::of(path, &FileFormat::ALL)
    }
}
