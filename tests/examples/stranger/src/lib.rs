//! A stranger's extension: an operator, a rule, a pass and an analysis, by the book.
