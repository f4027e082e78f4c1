//! Programs made from the bytes, at every oracle.

#![no_main]

use flambeau_fuzz::oracle::{AliasTruth, JournalReplay, MachineAgrees, TextRoundTrip};
use flambeau_fuzz::{Menu, Oracle, Outcome};
use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static MENU: OnceLock<Menu> = OnceLock::new();
    let case = MENU.get_or_init(|| Menu::new(&flambeau::ops::registry())).case(data);
    let oracles: [&dyn Oracle; 4] = [&TextRoundTrip, &JournalReplay, &MachineAgrees, &AliasTruth];
    for oracle in oracles {
        if let Outcome::Failed(why) = oracle.check(&case) {
            panic!("{}: {why}\n{}", oracle.name(), case.to_text());
        }
    }
});
