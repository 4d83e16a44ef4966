//! The fast half of nightwire's codec, and of its check of VOEvents (`voevent`).
//!
//! Python decides (`nightwire.schemas`: names, defaults, promotions, unions) and hands over a tree;
//! this crate only executes it.  `Encoder` turns dicts into bytes, `Decoder` bytes into dicts,
//! `Batcher` many bodies into Arrow columns.

mod buffer;
mod columns;
mod cursor;
mod decode;
mod encode;
mod error;
mod output;
mod voevent;

#[pyo3::pymodule]
mod nightwire_native {
    #[pymodule_export]
    use crate::columns::Batcher;
    #[pymodule_export]
    use crate::decode::Decoder;
    #[pymodule_export]
    use crate::encode::Encoder;
    #[pymodule_export]
    use crate::error::{DecodeError, EncodeError};
    #[pymodule_export]
    use crate::voevent::{Checked, Checker};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
    /// A hash of the sources that this was built from, by which Python knows a stale build.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __sources__: &str = env!("NIGHTWIRE_NATIVE_SOURCES");
}
