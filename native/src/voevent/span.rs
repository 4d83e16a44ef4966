//! Stretches of a document.

/// From one byte to before another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Of a document that is shorter than 4 GiB.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }

    pub fn start(self) -> usize {
        self.start as usize
    }

    pub fn end(self) -> usize {
        self.end as usize
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// The bytes of *document* that it is about; none where it does not reach so far.
    #[inline]
    pub fn of(self, document: &[u8]) -> &[u8] {
        document.get(self.start()..self.end()).unwrap_or_default()
    }
}
