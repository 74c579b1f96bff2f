//! Several requests of one operation as one.

use plimsoll_model::EndpointId;

use super::*;

/// A request that sent its last byte and had its first at these times.
fn request(sent: Option<u64>, first: u64, end: u64) -> Completion {
    Completion {
        last_byte_sent: sent.map(Moment::from_ns),
        first_byte: Some(Moment::from_ns(first)),
        objects_count: 2,
        bytes: 5,
        resent_count: 1,
        ..Completion::bare(EndpointId(0), Moment::from_ns(end), Ok(()))
    }
}

#[test]
fn the_time_to_first_byte_of_several_requests_is_that_of_the_first() {
    // The second sends its body after the first was answered: 180 - 250 is no time.
    let whole = together(request(Some(110), 180, 200), request(Some(250), 330, 350));
    let moments = (whole.last_byte_sent, whole.first_byte, whole.end);
    let [sent, first, end] = [110, 180, 350].map(Moment::from_ns);
    assert_eq!(moments, (Some(sent), Some(first), end));
    assert_eq!((whole.objects_count, whole.bytes, whole.resent_count), (4, 10, 2));
    let whole = together(request(None, 180, 200), request(Some(250), 330, 350));
    assert_eq!((whole.last_byte_sent, whole.first_byte), (None, Some(first)));
}
