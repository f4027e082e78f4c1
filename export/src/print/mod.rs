//! The texts that PyTorch prints for a program.
