//! Why the reading of a document ends before its end.

/// What was found where reading stopped.
#[derive(Debug, PartialEq)]
pub enum Stop {
    /// It is no well-formed XML, or XML that is not accepted: the byte, and what is wrong there.
    Malformed { at: usize, why: &'static str },
    /// It may be, but uses what only a complete parser can judge.
    Unsure(&'static str),
}

pub type Read<T> = Result<T, Stop>;

pub fn malformed<T>(at: usize, why: &'static str) -> Read<T> {
    Err(Stop::Malformed { at, why })
}

pub fn unsure<T>(why: &'static str) -> Read<T> {
    Err(Stop::Unsure(why))
}
