//! The fast half of nightwire's codec, and of its check of VOEvents (`voevent`).
//!
//! Python decides (`nightwire.schemas`: names, defaults, promotions, unions) and hands over a tree; this
//! crate only executes it.  `Encoder` turns dicts into bytes, `Decoder` bytes into dicts, `Batcher` many
//! bodies into Arrow columns.

mod body;
mod choose;
mod columns;
mod compounds;
mod cursor;
mod decode;
mod encode;
mod entries;
mod fault;
mod fit;
mod layout;
mod output;
mod plan;
mod reader;
mod scalars;
mod skip;
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
    use crate::fault::{DecodeFault, EncodeFault};
    #[pymodule_export]
    use crate::voevent::{Checked, Checker};

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
