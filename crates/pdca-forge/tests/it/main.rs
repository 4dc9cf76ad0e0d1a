//! Exports of trackers: each record is counted or refused.

mod exports;
mod laws;
