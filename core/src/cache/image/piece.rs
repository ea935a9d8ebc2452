//! The pieces of an image. Each has a label: what it is, its number, its length, a hash of its content, and a hash of
//! these. So a damaged piece is found, and passed over as long as its label is whole.

use super::{bytes_of, words_at};
use crate::hash::Hash128;
use crate::room::Room;
use std::io::{self, Read, Write};

/// What a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The first piece.
    Facts,
    /// Some words of a part of the block.
    Words,
    /// The description of an entry, whose chunks follow.
    Entry,
    /// A chunk of an entry.
    Chunk,
    /// The last piece.
    End,
}

const KINDS: [Kind; 5] = [Kind::Facts, Kind::Words, Kind::Entry, Kind::Chunk, Kind::End];

/// What stands before each piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label {
    pub(super) kind: Kind,
    number: u64,
    pub(super) len: u64,
    content: Hash128,
}

impl Label {
    /// The bytes of its fields, and of a hash of them.
    const BYTES: usize = 7 * size_of::<u64>();

    fn to_bytes(self) -> [[u8; 8]; 7] {
        let fields = [self.kind as u64, self.number, self.len, self.content.hi, self.content.lo];
        let hash = Hash128::of(bytes_of(fields).as_flattened());
        let [kind, number, len, hi, lo] = fields;
        bytes_of([kind, number, len, hi, lo, hash.hi, hash.lo])
    }

    /// `None` if a byte is not as it was written.
    fn of_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let ([kind, number, len, hi, lo], _) = words_at(bytes)?;
        let kind = *KINDS.get(usize::try_from(kind).ok()?)?;
        let label = Self { kind, number, len, content: Hash128 { hi, lo } };
        (label.to_bytes().as_flattened() == bytes).then_some(label)
    }
}

/// Writes pieces, and counts them.
pub(super) struct Writer<'w, W> {
    to: &'w mut W,
    number: u64,
}

impl<'w, W: Write> Writer<'w, W> {
    pub(super) fn new(to: &'w mut W) -> Self {
        Self { to, number: 0 }
    }

    pub(super) fn piece(&mut self, kind: Kind, content: &[u8]) -> io::Result<()> {
        let label = Label { kind, number: self.number, len: content.len() as u64, content: Hash128::of(content) };
        self.number += 1;
        self.to.write_all(label.to_bytes().as_flattened())?;
        self.to.write_all(content)
    }
}

/// Nothing that follows can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self
    }
}

/// Reads pieces in the order in which they were written.
pub(super) struct Reader<'r, R> {
    from: &'r mut R,
    number: u64,
    content: Vec<u8>,
}

impl<'r, R: Read> Reader<'r, R> {
    pub(super) fn new(from: &'r mut R) -> Self {
        Self { from, number: 0, content: Vec::new() }
    }

    /// The label of the next piece, whose content is read or passed over next.
    pub(super) fn label(&mut self) -> Result<Label, Broken> {
        let mut bytes = [0; Label::BYTES];
        self.from.read_exact(&mut bytes)?;
        let label = Label::of_bytes(&bytes).filter(|label| label.number == self.number).ok_or(Broken)?;
        self.number += 1;
        Ok(label)
    }

    /// The content of a piece; `None` if it is damaged, or there is no memory for it.
    pub(super) fn content(&mut self, label: &Label) -> Result<Option<&[u8]>, Broken> {
        self.content.clear();
        let len = usize::try_from(label.len).map_err(|_| Broken)?;
        if self.content.make_room(len).is_err() {
            self.pass(label)?;
            return Ok(None);
        }
        self.content.resize(len, 0);
        self.from.read_exact(&mut self.content)?;
        Ok(Some(self.content.as_slice()).filter(|content| Hash128::of(content) == label.content))
    }

    /// Reads the content of a piece to a place of its length. Returns true if it is not damaged.
    pub(super) fn content_to(&mut self, label: &Label, place: &mut [u8]) -> Result<bool, Broken> {
        self.from.read_exact(place)?;
        Ok(Hash128::of(place) == label.content)
    }

    /// Passes over the content of a piece.
    pub(super) fn pass(&mut self, label: &Label) -> Result<(), Broken> {
        let passed = io::copy(&mut self.from.by_ref().take(label.len), &mut io::sink())?;
        if passed == label.len { Ok(()) } else { Err(Broken) }
    }
}
