//! The log of events: what is written is read again.

mod events_round_trip;
mod events_stream;
