//! What only a ring has: entries that are cancelled, rings that are full or cannot be had, runtimes
//! that end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tokio::runtime::{Builder, Runtime};

use super::*;

/// Counts up by one for every reading.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Clock for Counting {
    fn now(&self) -> Moment {
        Moment::from_ns(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Tells whether there are rings here, and says so where there are none.
fn has_rings() -> bool {
    probe().inspect_err(|error| eprintln!("skipped, there is no io_uring: {error}")).is_ok()
}

fn clock() -> SharedClock {
    Arc::new(Counting::default())
}

/// Returns a connection over the ring of the calling runtime, and its other end.
async fn connected(listener: &TcpListener) -> (Stream, TcpStream) {
    let tcp = net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let other = listener.accept().unwrap().0;
    let stream = Stream::new(tcp, &clock()).map_err(|(_, error)| error).unwrap();
    (stream, other)
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// Waits for what comes next, and returns it as far as `size` bytes.
async fn receive(stream: &mut Stream, size: usize) -> io::Result<Vec<u8>> {
    let clock = clock();
    let mut room = vec![0; size];
    let receive = std::future::poll_fn(|cx| stream.poll_receive(cx, &mut room, &*clock));
    let (count, _) = receive.await?;
    room.truncate(count);
    Ok(room)
}

async fn send(stream: &mut Stream, first: &[u8], second: &[u8]) -> io::Result<usize> {
    std::future::poll_fn(|cx| stream.poll_send(cx, first, second)).await
}

/// Returns how many connections the ring of a stream has.
fn connections(stream: &Stream) -> usize {
    stream.shared.ring.borrow().connections()
}

/// Lets the runtime go on until `holds`.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn what_is_dropped_while_the_kernel_receives_is_kept_until_it_has_answered() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let listener = listener();
        let (kept, _other) = connected(&listener).await;
        let (dropped, mut other) = connected(&listener).await;
        // The kernel has the room of both by then.
        until(|| kept.shared.driver.borrow().is_some()).await;
        assert_eq!(connections(&kept), 2);
        drop(dropped);
        assert_eq!(connections(&kept), 2, "its memory is still the kernel's");
        assert_eq!(other.read(&mut [0; 9]).unwrap(), 0, "nothing more goes over it");
        until(|| connections(&kept) == 1).await;
        // Its place is free for the next one, which hears nothing of the last.
        let (mut next, mut other) = connected(&listener).await;
        assert_eq!(connections(&kept), 2);
        other.write_all(b"hello").unwrap();
        assert_eq!(receive(&mut next, 9).await.unwrap(), b"hello");
    });
}

#[test]
fn what_came_is_received_in_order_whatever_room_there_is() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let (mut stream, mut other) = connected(&listener()).await;
        let content: Vec<u8> = (0..20_000_u32).map(|at| (at * 7 / 3) as u8).collect();
        other.write_all(&content).unwrap();
        let mut came = Vec::new();
        for room in [1, 4_095, 5_000, 1, 9_000, 20_000].into_iter().cycle() {
            came.extend(receive(&mut stream, room).await.unwrap());
            // As after each exchange: what lies there or in the socket is not overtaken.
            stream.await_answer();
            if came.len() == content.len() {
                break;
            }
        }
        assert!(came == content);
    });
}

/// An answer that fills the room to its last byte may leave more in the socket, which the receive
/// of the next exchange must find first.
#[test]
fn nothing_is_read_beside_a_receive_that_is_under_way() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let (mut stream, mut other) = connected(&listener()).await;
        for _ in 0..3 {
            other.write_all(&[1; slot::ROOM_BYTES]).unwrap();
            let whole = receive(&mut stream, slot::ROOM_BYTES).await.unwrap();
            assert_eq!(whole.len(), slot::ROOM_BYTES);
            assert_eq!(stream.received(), Received::MoreInSocket);
            stream.await_answer();
            assert_eq!(stream.received(), Received::UnderWay, "the socket is the kernel's to read");
        }
    });
}

#[test]
fn more_connections_than_a_ring_takes_at_once_all_go_on() {
    if !has_rings() {
        return;
    }
    const CONNECTIONS: usize = 700;
    runtime().block_on(async {
        let listener = listener();
        let mut all = Vec::new();
        for _ in 0..CONNECTIONS {
            all.push(connected(&listener).await);
        }
        // More entries than the queue has, as all of them have a receive under way as well.
        for (number, (stream, _)) in all.iter_mut().enumerate() {
            let text = format!("{number:4}");
            assert_eq!(send(stream, text.as_bytes(), b"").await.unwrap(), 4);
        }
        until(|| all.iter().all(|(stream, _)| stream.sending() == Sending::Over)).await;
        for (number, (stream, other)) in all.iter_mut().enumerate() {
            let mut text = [0; 4];
            other.read_exact(&mut text).unwrap();
            assert_eq!(text, *format!("{number:4}").as_bytes());
            other.write_all(&text).unwrap();
            assert_eq!(receive(stream, 9).await.unwrap(), text);
        }
    });
}

/// A queue of one entry, and answers that the kernel has to keep.
#[test]
fn a_ring_that_is_full_loses_nothing() {
    if !has_rings() {
        return;
    }
    let listener = listener();
    let mut ring = Ring::with_room(1, 2).unwrap();
    let mut others = Vec::new();
    let mut places = Vec::new();
    for _ in 0..20 {
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        others.push(listener.accept().unwrap().0);
        places.push(ring.add(Slot::new(tcp, clock())));
    }
    for place in &places {
        ring.slot(*place).fill(b"question");
        ring.send(*place);
        assert!(ring.receive(*place));
        assert!(!ring.receive(*place), "one at a time");
        assert!(ring.await_room(*place));
        assert!(!ring.await_room(*place), "one at a time");
    }
    assert!(ring.turn());
    for other in &mut others {
        let mut question = [0; 8];
        other.read_exact(&mut question).unwrap();
        other.write_all(b"answer").unwrap();
    }
    for place in &places {
        while ring.slot(*place).under_way > 0 {
            assert!(ring.turn());
        }
        let slot = ring.slot(*place);
        assert_eq!((slot.sending, slot.awaits_room), (Sending::Over, false));
        assert!(matches!(slot.received, Received::Bytes { from: 0, to: 6, .. }));
    }
}

#[test]
fn a_body_waits_for_room_without_asking_twice() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let (mut stream, mut other) = connected(&listener()).await;
        let piece = vec![7; 1 << 20];
        let mut taken = 0;
        let mut waker = Context::from_waker(Waker::noop());
        while let Poll::Ready(count) = stream.poll_send(&mut waker, &[], &piece) {
            taken += count.unwrap();
        }
        assert!(stream.poll_send(&mut waker, &[], &piece).is_pending());
        // The receive, and one that waits for room.
        assert_eq!(stream.shared.ring.borrow_mut().slot(stream.place).under_way, 2);
        let reader = std::thread::spawn(move || {
            let mut came = vec![0; taken];
            other.read_exact(&mut came).unwrap();
            other
        });
        assert!(send(&mut stream, &[], &piece).await.unwrap() > 0);
        drop(reader.join().unwrap());
    });
}

#[test]
fn a_reset_is_heard_of_whether_one_waits_or_not() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let listener = listener();
        for waits in [true, false] {
            let (mut stream, other) = connected(&listener).await;
            send(&mut stream, b"never read", b"").await.unwrap();
            until(|| stream.sending() == Sending::Over).await;
            // Closing with unread bytes makes the kernel send a reset.
            drop(other);
            if !waits {
                until(|| stream.has_something()).await;
            }
            let error = receive(&mut stream, 9).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
            assert!(stream.has_something());
        }
    });
}

#[test]
fn each_runtime_of_a_thread_has_a_ring_of_its_own() {
    if !has_rings() {
        return;
    }
    let listener = listener();
    let (first, second) = (runtime(), runtime());
    let (mut of_first, mut other_of_first) = first.block_on(connected(&listener));
    // Nobody drives the first one meanwhile.
    second.block_on(async {
        let (mut stream, mut other) = connected(&listener).await;
        assert!(!Rc::ptr_eq(&stream.shared, &of_first.shared));
        other.write_all(b"second").unwrap();
        assert_eq!(receive(&mut stream, 9).await.unwrap(), b"second");
    });
    drop(second);
    other_of_first.write_all(b"first").unwrap();
    assert_eq!(first.block_on(receive(&mut of_first, 9)).unwrap(), b"first");
    drop(first);
    let error = runtime().block_on(receive(&mut of_first, 9)).unwrap_err();
    assert_eq!(error.to_string(), "its runtime has ended");
    assert!(PRESENT.with_borrow(Vec::is_empty));
}

#[test]
fn without_a_ring_there_are_sockets_unless_it_is_demanded() {
    use crate::Transport;
    use crate::channel::Channel;
    use crate::connection::Dialled;

    // As the kernel says where a container's filter forbids it.
    REFUSED.set(Some(libc::EPERM));
    runtime().block_on(async {
        let listener = listener();
        let of = async |transport| {
            let tcp = net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            Channel::new(Dialled::Plain(tcp), transport, &clock())
        };
        for transport in [Transport::Auto, Transport::Sockets] {
            assert!(matches!(of(transport).await, Ok(Channel::Runtime(_))));
        }
        let Err(error) = of(Transport::IoUring).await else { panic!("there is none") };
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    });
    assert_eq!(seen::take().over_ring, 0);
}
