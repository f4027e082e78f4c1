//! TorchScript archives in and out; hostile input is normal input.
