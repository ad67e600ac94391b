package main

import (
	"fmt"
	"math/rand"
	"time"
)

// queued is killed before each of its effects on the cluster, and at any moment between, and started again. The checker watches that no member
// may start while another is missing and that two attempts never meet; here: the job ends well and nothing is left.

func crashCases(o *options) []testCase {
	return []testCase{
		{name: "crash/before-every-effect", profile: "usual", limit: 5 * time.Minute, run: func(t *T) { crashEffects(t) }},
		{name: "crash/before-every-effect-of-binding", profile: "usual", limit: 5 * time.Minute,
			run: func(t *T) { crashEffects(t, "--bind-classes", "gpu", "--bind-pods", "true") }},
		{name: "crash/100-times", profile: "usual", limit: 8 * time.Minute, run: func(t *T) { crashSeeded(t, o.seed) }},
	}
}

// crashEffects kills before the N-th effect for N = 1, 2, ... until the last one is passed.
func crashEffects(t *T, flags ...string) {
	t.plainWorld(4, 8)
	t.agent.setDuration(300 * time.Millisecond)
	ns := t.namespace()
	for n := 1; n < 200; n++ {
		q := t.prepared(append([]string{"--crash-at", fmt.Sprint(n)}, flags...)...)
		h := t.handIn(q, gangOptions{name: fmt.Sprintf("kill-%d", n), ns: ns, members: 3})
		if !t.diesOrEnds(q, h.id) {
			t.logf("%d effects", n-1)
			if n < 10 {
				t.errorf("a launch has more than %d effects", n-1)
			}
			return
		}
		t.recovers(q, h, ns, fmt.Sprintf("killed before effect %d", n))
	}
	t.errorf("it never passed the last effect")
}

// prepared has its queue already, so that the first effects are those of a launch.
func (t *T) prepared(flags ...string) *server {
	q := t.queued()
	t.must(q.stop(), "stop")
	t.must(q.start(flags...), "start")
	return q
}

// handed is a gang that was submitted. Without an answer the job may be durable or not; it would be job 1.
type handed struct {
	id         int64
	gang       gangOptions
	isAnswered bool
}

func (t *T) handIn(q *server, o gangOptions) handed {
	jobs, err := q.submit("", gangText(o))
	if err == nil {
		return handed{jobs[0].ID, o, true}
	}
	t.eventually(2*time.Second, func() string {
		if q.proc.hasEnded() && q.wasKilled() {
			return ""
		}
		return err.Error()
	})
	return handed{1, o, false}
}

// diesOrEnds: true when the process was killed, false when the job ended before that.
func (t *T) diesOrEnds(q *server, id int64) bool {
	died := false
	t.eventually(30*time.Second, func() string {
		if died = q.proc.hasEnded(); died {
			if !q.wasKilled() {
				t.fatalf("queued ended by itself: %v\n%s", q.proc.err, q.tail(8))
			}
			return ""
		}
		if j, err := q.job(id); err == nil && j.hasEnded() {
			return ""
		}
		return "neither killed nor done"
	})
	return died
}

// recovers starts the server again: what was answered is there, goes on to its end and leaves nothing.
func (t *T) recovers(q *server, h handed, ns, how string) {
	t.must(q.start(), "start again (%s)", how)
	if _, err := q.job(h.id); err != nil && !h.isAnswered {
		h = t.handIn(q, h.gang)
	}
	j, err := q.wait(h.id, "ended", 30*time.Second)
	if err != nil || j.State != "Succeeded" {
		t.fatalf("%s: the job is %s: %s (%v)", how, j.State, j.Reason, err)
	}
	t.nothingLeft(ns)
	t.must(q.stop(), "stop (%s)", how)
}

func crashSeeded(t *T, seed int64) {
	t.plainWorld(4, 8)
	t.agent.setDuration(200 * time.Millisecond)
	ns, random := t.namespace(), rand.New(rand.NewSource(seed))
	for i := range 100 {
		members, how := 1+random.Intn(5), ""
		var flags []string
		var after time.Duration
		if random.Intn(2) == 0 {
			n := 1 + random.Intn(4+3*members)
			flags, how = []string{"--crash-at", fmt.Sprint(n)}, fmt.Sprintf("round %d: killed before effect %d", i, n)
		} else {
			after = time.Duration(random.Intn(700)) * time.Millisecond
			how = fmt.Sprintf("round %d: killed after %s", i, after)
		}
		q := t.prepared(flags...)
		h := t.handIn(q, gangOptions{name: fmt.Sprintf("kill-%d", i), ns: ns, members: members})
		if after > 0 {
			time.Sleep(after)
			q.proc.kill()
		} else {
			t.diesOrEnds(q, h.id)
		}
		if !q.proc.hasEnded() { // the job was done before
			t.must(q.stop(), "stop")
		}
		t.recovers(q, h, ns, how)
		if faults := t.checker.take(); len(faults) > 0 {
			t.fatalf("%s: %v", how, faults)
		}
	}
}
