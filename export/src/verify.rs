//! Rules of exported programs.
