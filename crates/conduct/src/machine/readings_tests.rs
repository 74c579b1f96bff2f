//! What the kernel writes, as it is read.

use super::*;

#[test]
fn processors_are_busy_but_for_what_is_idle_or_stolen() {
    let stat = "cpu  100 10 50 800 20 5 5 10 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
    let all = processors(stat, 100).unwrap();
    // 1,000 ticks of 10 ms: 170 busy, 10 stolen.
    assert_eq!(all.all_ns, 10_000_000_000);
    assert_eq!((all.busy_ns, all.steal_ns), (1_700_000_000, 100_000_000));
    assert_eq!(processors("cpu  1 2 3\n", 100), None);
    assert_eq!(processors("", 100), None);
}

#[test]
fn interfaces_count_both_ways() {
    let dev = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame\n    \
               lo:  700  7 0 0 0 0 0 0  700 7 0 0 0 0 0 0\n  \
               eth0: 1000 10 1 2 0 0 0 0 2000 20 3 4 0 0 0 0\n";
    let all = interfaces(dev);
    assert_eq!(all.len(), 2);
    let eth = &all["eth0"];
    assert_eq!((eth.received_bytes, eth.sent_bytes, eth.lost_count), (1_000, 2_000, 10));
}

#[test]
fn only_devices_below_the_files_are_told() {
    let stats = "   7 0 loop0 1830 0 24480 193 288 720 58944 78 0 336 420 48 0 589872 87 96 61\n \
                 254 1 vda1 100 0 0 0 50 0 0 0 2 1500 4500\n";
    let all = devices(stats, [(254, 1)].into_iter());
    assert_eq!(all.keys().collect::<Vec<_>>(), ["vda1"]);
    let vda = &all["vda1"];
    assert_eq!(vda.requests_count, 150);
    assert_eq!((vda.busy_ns, vda.queue_ns), (1_500_000_000, 4_500_000_000));
    assert!(devices(stats, std::iter::empty()).is_empty());
}

#[test]
fn a_delay_that_is_not_known_is_none() {
    let thread = |cpu, run_delay: Option<u64>| ThreadUsage {
        cpu: Duration::from_nanos(cpu),
        run_delay: run_delay.map(Duration::from_nanos),
    };
    let known = threads(&[thread(5, Some(1)), thread(7, Some(2))]);
    assert_eq!((known.count, known.cpu_ns, known.run_delay_ns), (2, Some(12), Some(3)));
    assert_eq!(known.busiest[0], ThreadEvidence { cpu_ns: 7, run_delay_ns: 2 });
    let unknown = threads(&[thread(5, Some(1)), thread(7, None)]);
    assert_eq!((unknown.cpu_ns, unknown.run_delay_ns), (Some(12), None));
    assert!(unknown.busiest.is_empty());
}

#[test]
fn this_machine_tells_of_itself() {
    let before = Readings::now(&[]);
    let now = Readings::now(&[]);
    let (before, now) = (before.processors.unwrap(), now.processors.unwrap());
    assert!(now.all_ns >= before.all_ns && now.busy_ns <= now.all_ns);
    assert!(descriptors().unwrap() > 0);
}

#[test]
fn the_median_is_the_lower_one() {
    assert_eq!(median(&[3, 1, 2]), Some(2));
    assert_eq!(median(&[4, 1, 2, 3]), Some(2));
    assert_eq!(median::<u32>(&[]), None);
}
