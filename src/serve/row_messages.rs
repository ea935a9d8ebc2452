//! What makes DataRow messages for the client, of rows that are stored or about to be: the encoder, the block that the
//! messages are made in, and the server's functions for values without a format of ours. State of this backend, which
//! its runs use one after the other; nothing is locked.

use std::cell::RefCell;

use arrow_cache_core::OutOfMemory;
use arrow_cache_core::formats::wire::{Encoder, MessageBuffer, WireFormat, Zone};

use super::client_formats::ClientFormats;
use super::column_formats::OutputSettings;
use super::output_functions::OutputFunctions;
use super::rendition::Draft;
use crate::arrow::column::Column;
use crate::pg::backend_local::Local;
use crate::pg::session_zone;

/// Bytes of the block: of rows of a hit that are sent at once. For a larger row it grows, until the run ends.
const BLOCK: usize = 64 * 1024;

/// What makes messages of the rows of a run.
pub struct RowMessages {
    /// Makes them.
    pub(super) encoder: Encoder,
    /// Those that were made.
    pub(super) block: MessageBuffer,
    /// The time zone that the encoder was made for.
    zone: usize,
    /// The number of the chunk that the functions read.
    pub(super) chunk: Option<usize>,
    /// The server's functions.
    pub(super) functions: OutputFunctions,
    /// There are some.
    pub(super) has_functions: bool,
    /// The rendition that is made of what is sent.
    pub(super) draft: Option<Draft>,
}

/// What this backend uses again for its next run.
static REUSABLE: Local<RefCell<Option<Box<RowMessages>>>> = Local::new(RefCell::new(None));

impl RowMessages {
    /// What makes messages of rows of these columns, under these settings, and a rendition of them if there is a draft.
    ///
    /// # Errors
    /// There is no memory for it.
    pub(super) fn ready(
        columns: &[Column],
        settings: &OutputSettings,
        formats: &ClientFormats<'_>,
        draft: Option<Draft>,
    ) -> Result<Box<Self>, OutOfMemory> {
        let zone = session_zone::identity();
        let mut sender = match REUSABLE.take() {
            Some(sender) => sender,
            None => Self::new(zone)?,
        };
        if sender.zone != zone {
            sender.encoder.set_zone(Zone::new(session_zone::offset_at, zone));
            sender.zone = zone;
        }
        let mut has_functions = false;
        sender.encoder.set_shape(formats.shape);
        sender.encoder.set_formats(columns.iter().enumerate().map(|(index, column)| {
            let format = settings.wire_format(column, formats.is_binary(index));
            has_functions |= format == WireFormat::ByServer;
            format
        }))?;
        if has_functions {
            let is_binary = |column| formats.is_binary(column);
            sender.functions = OutputFunctions::new(columns, sender.encoder.formats(), is_binary)?;
        }
        sender.has_functions = has_functions;
        sender.draft = draft;
        Ok(sender)
    }

    /// One that was never used, for this time zone.
    #[cold]
    fn new(zone: usize) -> Result<Box<Self>, OutOfMemory> {
        Ok(Box::new(Self {
            encoder: Encoder::new(Vec::new(), Zone::new(session_zone::offset_at, zone)),
            block: MessageBuffer::new(BLOCK)?,
            zone,
            chunk: None,
            functions: OutputFunctions::none(),
            has_functions: false,
            draft: None,
        }))
    }

    /// Returns true if this is the session's time zone.
    #[inline]
    pub(super) fn fit_zone(&self) -> bool {
        self.zone == session_zone::identity()
    }

    /// Keeps what can be used again for the backend's next run, and gives the rest back.
    pub(super) fn put_away(held: &mut Option<Box<Self>>) {
        if let Some(mut sender) = held.take() {
            if sender.has_functions {
                sender.functions.end();
                sender.chunk = None;
            }
            sender.draft = None;
            if sender.block.size() <= BLOCK {
                REUSABLE.replace(Some(sender));
            }
        }
    }
}
