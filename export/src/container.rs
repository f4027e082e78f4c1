//! Containers of exported programs: finds the records of a file in each layout.
