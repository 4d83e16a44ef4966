//! Avro's primitives, appended to a buffer.

pub trait Output {
    fn put_boolean(&mut self, value: bool);
    /// A zigzag varint, of an int as of a long.
    fn put_long(&mut self, value: i64);
    /// The nearest float of 32 bits.
    fn put_float(&mut self, value: f64);
    fn put_double(&mut self, value: f64);
    /// Bytes behind their length.
    fn put_bytes(&mut self, value: &[u8]);
}

impl Output for Vec<u8> {
    #[inline]
    fn put_boolean(&mut self, value: bool) {
        self.push(value.into());
    }

    #[inline]
    fn put_long(&mut self, value: i64) {
        let mut bits = ((value << 1) ^ (value >> 63)) as u64;
        while bits >= 0x80 {
            self.push(bits as u8 | 0x80);
            bits >>= 7;
        }
        self.push(bits as u8);
    }

    #[inline]
    fn put_float(&mut self, value: f64) {
        self.extend_from_slice(&(value as f32).to_le_bytes());
    }

    #[inline]
    fn put_double(&mut self, value: f64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_bytes(&mut self, value: &[u8]) {
        self.put_long(value.len() as i64);
        self.extend_from_slice(value);
    }
}
