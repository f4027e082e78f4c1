//! Check: packages that `release` hardly optimizes have another level in `dist`, which inherits the levels of `release`.

use crate::architecture::Architecture;
use crate::report::Report;
use crate::workspace::Workspace;

/// Levels of code that is compiled fast, not to run fast.
const LOW: [&str; 2] = ["0", "1"];

pub(super) fn check(
    workspace: &Workspace,
    _: Option<&Architecture>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let level =
        |settings: &str| settings.split('=').nth(1).map(|level| level.trim_matches([' ', '}']).to_owned());
    let is_low = |settings: &str| level(settings).is_some_and(|level| LOW.contains(&&*level));
    for (package, settings) in workspace.manifest.entries("profile.release.package") {
        let shipped = workspace.manifest.entries("profile.dist.package").find(|(name, _)| *name == package);
        if is_low(settings) && shipped.is_none_or(|(_, settings)| is_low(settings)) {
            report.find("Cargo.toml", format!("the profile `dist` inherits the low level of `{package}`"));
        }
    }
    Ok(())
}
