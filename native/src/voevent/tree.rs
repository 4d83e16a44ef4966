//! Stretches of a document, and its elements in order: where each is, not what is in it.

use std::ops::Range;

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

pub struct Node {
    /// Without its prefix.
    pub name: Span,
    /// Of the document's attributes.
    pub attributes: Range<usize>,
    /// Where its content begins.
    pub content: usize,
    pub parent: Option<usize>,
    /// The node behind its last descendant.
    pub end: usize,
}

#[derive(Default)]
pub struct Tree {
    nodes: Vec<Node>,
    current: Option<usize>,
}

impl Tree {
    pub fn open(&mut self, name: Span, attributes: Range<usize>, content: usize) {
        let parent = self.current.replace(self.nodes.len());
        self.nodes.push(Node { name, attributes, content, parent, end: 0 });
    }

    pub fn close(&mut self) {
        let end = self.nodes.len();
        if let Some(node) = self.current.and_then(|current| self.nodes.get_mut(current)) {
            node.end = end;
            self.current = node.parent;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn get(&self, node: usize) -> Option<&Node> {
        self.nodes.get(node)
    }

    /// The descendants of *node*.
    pub fn below(&self, node: usize) -> Range<usize> {
        node + 1..self.nodes.get(node).map_or(0, |node| node.end)
    }
}
