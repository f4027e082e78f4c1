//! Reader of the model from the records of a file.
