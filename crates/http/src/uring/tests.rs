//! What goes out together: what becomes of each request, rings that fail or cannot be had, runtimes
//! that end.

use std::fs::File;
use std::io::Read;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use plimsoll_model::{Clock, Moment};
use tokio::io::AsyncReadExt;
use tokio::net;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::channel::Channel;
use crate::connection::Dialled;
use crate::exchange::Carrier;
use crate::response::{ResponseHead, ResponseParser, ResponseSink};
use crate::{Body, ExchangeErrorKind, Transport, seen};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Tells whether there are rings here, and says so where there are none.
fn has_rings() -> bool {
    probe().inspect_err(|error| eprintln!("skipped, there is no io_uring: {error}")).is_ok()
}

/// A connection of the calling runtime that takes part in its batch, and its other end.
struct Both {
    member: Member,
    tcp: net::TcpStream,
    other: TcpStream,
}

impl Both {
    async fn new(listener: &TcpListener, least: usize) -> Self {
        let tcp = net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let other = listener.accept().unwrap().0;
        Self { member: Member::new(tcp.as_fd(), least).unwrap(), tcp, other }
    }

    /// Hands a request to the batch, and tells whether it took it.
    fn take(&self, bytes: &[u8]) -> bool {
        self.member.take(&Context::from_waker(Waker::noop()), bytes)
    }

    /// Returns what the other end receives next.
    fn heard(&mut self, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        self.other.read_exact(&mut bytes).unwrap();
        bytes
    }
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

async fn some(listener: &TcpListener, count: usize, least: usize) -> Vec<Both> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(Both::new(listener, least).await);
    }
    all
}

/// Lets the runtime go on until `holds`.
async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::task::yield_now().await;
    }
}

/// Has all send their number, and checks that it comes as it was sent.
async fn all_send(all: &mut [Both]) {
    for (number, both) in all.iter().enumerate() {
        assert!(both.take(format!("{number:4}").as_bytes()));
        assert_eq!(both.member.sending(), Sending::Waiting);
    }
    until(|| all.iter().all(|both| both.member.sending() == Sending::Over)).await;
    for (number, both) in all.iter_mut().enumerate() {
        assert_eq!(both.heard(4), format!("{number:4}").as_bytes());
    }
}

#[test]
fn more_requests_than_the_kernel_takes_at_once_all_go_out() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let mut all = some(&listener(), ENTRIES + 100, TOGETHER_MIN).await;
        for _ in 0..2 {
            all_send(&mut all).await;
        }
    });
    assert_eq!(seen::take().over_ring, 2 * (ENTRIES + 100) as u64);
}

#[test]
fn only_requests_that_are_many_go_through_the_ring() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let mut all = some(&listener(), TOGETHER_MIN - 1, TOGETHER_MIN).await;
        assert!(!all[0].take(b"alone"), "there cannot be enough of them");
        assert!(all[0].member.batch.ring.borrow().is_none(), "none is made in vain");
        all.push(Both::new(&listener(), TOGETHER_MIN).await);
        assert!(!all[0].take(&[b'x'; SEND_BYTES_MAX + 1]), "its copy would cost more");
        all_send(&mut all[1..]).await;
        assert_eq!(seen::take().over_ring, 0);
        all_send(&mut all).await;
        assert_eq!(seen::take().over_ring, TOGETHER_MIN as u64);
    });
}

#[test]
fn where_the_ring_is_demanded_one_request_goes_through_it() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let mut one = some(&listener(), 1, 1).await;
        all_send(&mut one).await;
    });
    assert_eq!(seen::take().over_ring, 1);
}

#[test]
fn what_was_dropped_is_not_sent_on_a_socket_that_has_its_number_now() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let listener = listener();
        let mut all = some(&listener, 2 * TOGETHER_MIN, TOGETHER_MIN).await;
        assert!(all.iter().all(|both| both.take(b"old ")));
        // As a rule one of the new sockets gets the number of an old one.
        all.truncate(TOGETHER_MIN);
        for mut next in some(&listener, TOGETHER_MIN, TOGETHER_MIN).await {
            until(|| all.iter().all(|both| both.member.sending() == Sending::Over)).await;
            assert!(next.take(b"new "));
            until(|| next.member.sending() == Sending::Over).await;
            assert_eq!(next.heard(4), b"new ");
        }
    });
}

#[test]
fn what_a_socket_does_not_take_is_left_to_its_session() {
    if !has_rings() {
        return;
    }
    for least in [1, TOGETHER_MIN] {
        runtime().block_on(async {
            let mut all = some(&listener(), TOGETHER_MIN, least).await;
            let content = vec![7; 1 << 20];
            let mut filled = 0;
            while let Ok(count) = all[0].tcp.try_write(&content) {
                filled += count;
            }
            let request = [8; SEND_BYTES_MAX];
            assert!(all[0].take(&request));
            until(|| all[0].member.sending() == Sending::Unfinished).await;
            let mut other = all[0].other.try_clone().unwrap();
            let reader = std::thread::spawn(move || {
                let mut came = vec![0; filled + SEND_BYTES_MAX];
                other.read_exact(&mut came).unwrap();
                came.split_off(filled)
            });
            let Both { member, tcp, .. } = &mut all[0];
            std::future::poll_fn(|cx| {
                member.poll_rest(|rest| {
                    tokio::io::AsyncWrite::poll_write(Pin::new(&mut *tcp), cx, rest)
                });
                match member.sending() {
                    Sending::Unfinished => Poll::Pending,
                    _ => Poll::Ready(()),
                }
            })
            .await;
            assert_eq!(member.sending(), Sending::Over);
            assert!(reader.join().unwrap() == request);
        });
    }
}

#[test]
fn a_refusal_is_known_and_wakes_who_waits() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let mut all = some(&listener(), TOGETHER_MIN, TOGETHER_MIN).await;
        let Both { member, mut tcp, other } = all.remove(0);
        other.set_nonblocking(true).unwrap();
        // Closed with a reset, it refuses what is sent from then on.
        net::TcpStream::from_std(other).unwrap().set_zero_linger().unwrap();
        let error = tcp.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        let sent = std::future::poll_fn(|cx| match member.sending() {
            Sending::Over => {
                all.iter().for_each(|both| assert!(both.take(b"fine")));
                assert!(member.take(cx, b"refused"));
                Poll::Pending
            }
            sending => Poll::Ready(sending),
        });
        assert_eq!(sent.await, Sending::Failed { errno: libc::EPIPE });
        assert!(all.iter().all(|both| both.member.sending() == Sending::Over));
    });
}

struct Still;

impl Clock for Still {
    fn now(&self) -> Moment {
        Moment::EPOCH
    }
}

struct Dropped;

impl ResponseSink for Dropped {
    fn head(&mut self, _: &ResponseHead<'_>) {}

    fn body(&mut self, _: &[u8]) {}
}

#[test]
fn a_request_that_is_refused_is_not_waited_for() {
    for transport in [Transport::Sockets, Transport::IoUring] {
        if transport == Transport::IoUring && !has_rings() {
            continue;
        }
        let listener = listener();
        let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        // The other side stays as it is: nothing comes of it that could be read.
        let _other = listener.accept().unwrap();
        tcp.shutdown(Shutdown::Write).unwrap();
        tcp.set_nonblocking(true).unwrap();
        let failed = runtime().block_on(async {
            let dialled = Dialled::Plain(net::TcpStream::from_std(tcp).unwrap());
            let mut channel = Channel::new(dialled, transport).unwrap();
            let (mut parser, mut buffer, mut sink) = (ResponseParser::new(), Vec::new(), Dropped);
            parser.start(false);
            let head = b"GET / HTTP/1.1\r\n\r\n";
            let request = crate::Request { head, method_is_head: false, body: Body::Empty };
            let mut carrier =
                Carrier::new(&Still, &mut channel, &mut parser, &mut buffer, request, &mut sink);
            let polled = std::future::poll_fn(|cx| carrier.poll(cx, &mut [0; 100]));
            tokio::time::timeout(Duration::from_secs(20), polled).await
        });
        let failure = failed.expect("it does not wait").err().unwrap();
        assert_eq!(failure.kind, ExchangeErrorKind::Reset);
        assert!(failure.message.contains("broken pipe"), "{}", failure.message);
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "something else than a ring is opened")]
fn a_ring_that_fails_is_replaced_by_calls() {
    if !has_rings() {
        return;
    }
    runtime().block_on(async {
        let mut all = some(&listener(), TOGETHER_MIN, TOGETHER_MIN).await;
        let batch = Rc::clone(&all[0].member.batch);
        let ring = batch.ring.borrow().as_ref().unwrap().as_raw_fd();
        let null = OwnedFd::from(File::open("/dev/null").unwrap());
        // SAFETY: both are open, and the ring's number stays that of an open file.
        assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), ring) }, ring);
        all_send(&mut all).await;
        assert!(batch.ring.borrow().is_none());
        assert!(!all[0].take(b"by itself"));
    });
    assert_eq!(seen::take().over_ring, 0);
}

#[test]
fn each_runtime_of_a_thread_has_a_batch_of_its_own() {
    if !has_rings() {
        return;
    }
    let listener = listener();
    let (first, second) = (runtime(), runtime());
    let mut of_first = first.block_on(some(&listener, TOGETHER_MIN, TOGETHER_MIN));
    // Nobody sends for the first one meanwhile.
    second.block_on(async {
        let mut of_second = some(&listener, TOGETHER_MIN, TOGETHER_MIN).await;
        assert!(!Rc::ptr_eq(&of_first[0].member.batch, &of_second[0].member.batch));
        all_send(&mut of_second).await;
    });
    drop(second);
    first.block_on(all_send(&mut of_first));
    drop(first);
    assert!(!of_first[0].take(b"nobody would send it"));
    assert!(PRESENT.with_borrow(Vec::is_empty));
}

#[test]
fn without_a_ring_there_are_sockets_unless_it_is_demanded() {
    // As the kernel says where a container's filter forbids it.
    REFUSED.set(Some(libc::EPERM));
    runtime().block_on(async {
        let listener = listener();
        let of = async |transport| {
            let tcp = net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            Channel::new(Dialled::Plain(tcp), transport)
        };
        let mut all = Vec::new();
        for transport in [Transport::Auto, Transport::Sockets].repeat(TOGETHER_MIN) {
            all.push(of(transport).await.unwrap());
        }
        for channel in &mut all {
            let mut waker = Context::from_waker(Waker::noop());
            assert!(channel.poll_write(&mut waker, b"by itself", &[]).is_ready());
            assert!(channel.has_taken_all());
        }
        let Err(error) = of(Transport::IoUring).await else { panic!("there is none") };
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    });
    assert_eq!(seen::take().over_ring, 0);
}
