//! Identity of shared values: which two handles are one, as `is` asks and as walks remember.
//!
//! A handle is a tuple struct around one `Arc`. The macro writes for each kind what would otherwise stand there word by
//! word; a trait would have to be imported wherever a handle is compared.

macro_rules! identity {
    ($($handle:ty: $noun:literal),* $(,)?) => {$(
        impl $handle {
            #[doc = concat!("Whether both are one ", $noun, ".")]
            #[must_use]
            pub fn ptr_eq(&self, other: &Self) -> bool {
                std::sync::Arc::ptr_eq(&self.0, &other.0)
            }

            /// Its identity, stable while it lives.
            #[must_use]
            pub fn id(&self) -> usize {
                std::sync::Arc::as_ptr(&self.0) as usize
            }
        }
    )*};
}
