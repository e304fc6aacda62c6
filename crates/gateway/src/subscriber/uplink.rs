//! A subscriber's uplink: the bytes that came over it, and the bound of its uploads.

use alloc::boxed::Box;

use paceline_wire::Instant;

use crate::bound::QueueBoundConfig;
use crate::upload::{UploadBound, UploadPath, UploadReport, UploadState};

/// The link, as the gateway sees it.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Uplink {
    /// Bytes of TCP that the subscriber has sent.
    #[serde(default)]
    uploaded: u64,
    /// The bound, once there are uploads.
    #[serde(default)]
    upload: Option<Box<UploadBound>>,
    #[serde(default)]
    upload_config: QueueBoundConfig,
}

impl Uplink {
    pub(super) fn new(upload_config: QueueBoundConfig) -> Self {
        Uplink { uploaded: 0, upload: None, upload_config }
    }

    /// Counts `bytes` of TCP that the subscriber has sent.
    pub(crate) fn note(&mut self, bytes: u64) {
        self.uploaded = self.uploaded.saturating_add(bytes);
    }

    /// Bytes of TCP that have arrived.
    pub(super) fn bytes(&self) -> u64 {
        self.uploaded
    }

    /// What an upload may have in flight.
    pub(super) fn path(&self) -> UploadPath {
        self.upload.as_ref().map_or(UploadPath::default(), |upload| upload.path())
    }

    /// True if uploads are bounded.
    pub(super) fn is_bounded(&self) -> bool {
        self.upload.as_ref().is_some_and(|upload| upload.is_active())
    }

    /// Handles arrived data of an upload.
    pub(crate) fn on_upload(&mut self, now: Instant, report: &UploadReport) -> UploadState {
        let config = self.upload_config;
        self.upload.get_or_insert_with(|| Box::new(UploadBound::new(config))).on_report(now, report)
    }
}
