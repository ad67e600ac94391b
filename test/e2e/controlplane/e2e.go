package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"sort"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// testCase is one fact that must hold. Cases with one profile share a control plane, in the order of the table.
type testCase struct {
	name    string
	profile string
	limit   time.Duration // 0: two minutes
	run     func(t *T)
}

// Control planes that cases ask for. One runs at a time.
var profiles = []struct {
	name    string
	options planeOptions
	lease   time.Duration
}{
	{"usual", planeOptions{SchedulerQPS: 1000, ManagerQPS: 1000, Gates: usualGates, RuntimeConfig: "resource.k8s.io/v1beta1=true,resource.k8s.io/v1beta2=true" + usualConfig}, 10 * time.Second},
	// Old versions are soon forgotten; native gangs; a silent node is soon found dead.
	{"special", planeOptions{SchedulerQPS: 1000, ManagerQPS: 1000, Gates: specialGates, RuntimeConfig: nativeGangConfig, Controllers: nativeGangControllers,
		APIServerFlags: []string{"--etcd-compaction-interval=5s", "--watch-cache=false"},
		ManagerFlags:   []string{"--node-monitor-grace-period=6s", "--node-monitor-period=1s"}}, 2 * time.Second},
	{"default-limits", planeOptions{Gates: nativeGangGates, RuntimeConfig: nativeGangConfig, Controllers: nativeGangControllers}, 10 * time.Second},
	{"raised-limits", planeOptions{SchedulerQPS: 1000, ManagerQPS: 1000, Gates: nativeGangGates, RuntimeConfig: nativeGangConfig, Controllers: nativeGangControllers}, 10 * time.Second},
}

// environment is what the cases of one profile share.
type environment struct {
	options *options
	plane   *plane
	agent   *agent
	kubelet *http.Server
	checker *checker
	k       *kubernetes.Clientset
	config  *rest.Config
	dynamic dynamic.Interface
	world   string // what nodes and devices are there now; empty: unknown
	account account
	cancel  context.CancelFunc
}

type options struct {
	repository, binary, submit, data, work string
	only                                   *regexp.Regexp
	seed                                   int64
	minor                                  int
	isFull, isKept                         bool
}

func (o *options) shared(elem ...string) string {
	return filepath.Join(append([]string{o.data}, elem...)...)
}

// T is a case that runs.
type T struct {
	*environment
	ctx      context.Context
	name     string
	dir      string
	began    time.Time
	cleanups []func()
	failures []string
	notes    []string
	n        int
	last     *server // that was made: its log tells most
}

type stopCase struct{ skipped string }

func (t *T) logf(format string, args ...any) { t.notes = append(t.notes, fmt.Sprintf(format, args...)) }
func (t *T) errorf(format string, args ...any) {
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}
func (t *T) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	panic(stopCase{})
}
func (t *T) skipf(format string, args ...any) { panic(stopCase{skipped: fmt.Sprintf(format, args...)}) }
func (t *T) must(err error, what string, args ...any) {
	if err != nil {
		t.fatalf("%s: %v", fmt.Sprintf(what, args...), err)
	}
}
func (t *T) cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

// eventually polls until f returns "" (what is still wrong otherwise).
func (t *T) eventually(limit time.Duration, f func() string) {
	wrong := ""
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if wrong = f(); wrong == "" {
			return
		}
		if t.ctx.Err() != nil {
			break
		}
	}
	t.fatalf("after %s: %s", limit, wrong)
}

// never polls for a while and fails when f finds something.
func (t *T) never(during time.Duration, f func() string) {
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(25 * time.Millisecond) {
		if found := f(); found != "" {
			t.fatalf("%s", found)
		}
	}
}

func (t *T) guard(f func()) (skipped string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stopCase:
			skipped = r.skipped
		default:
			t.errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	f()
	return ""
}

// verdict runs one case and whatever it left to be done at its end.
func (e *environment) verdict(ctx context.Context, c testCase) (skipped string, t *T) {
	limit := c.limit
	if limit == 0 {
		limit = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t = &T{environment: e, ctx: ctx, name: c.name, began: time.Now(), dir: filepath.Join(e.options.work, regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(c.name, "-"))}
	e.checker.take()
	skipped = t.guard(func() { c.run(t) })
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.guard(t.cleanups[i])
	}
	for _, fault := range e.checker.take() {
		t.errorf("invariant: %s", fault)
	}
	if len(t.failures) > 0 {
		e.world = "" // the next one begins anew
	}
	return skipped, t
}

func startEnvironment(ctx context.Context, o *options, profile int) (*environment, error) {
	e := &environment{options: o}
	ctx, e.cancel = context.WithCancel(ctx)
	settings := profiles[profile].options
	settings.Dir = filepath.Join(o.work, "plane-"+profiles[profile].name)
	began := time.Now()
	var err error
	if e.plane, err = startPlane(settings); err != nil {
		return nil, err
	}
	if err = e.connect(ctx, profiles[profile].lease); err != nil {
		e.stop()
		return nil, err
	}
	fmt.Printf("-- control plane %s: ready after %.1f s\n", profiles[profile].name, time.Since(began).Seconds())
	return e, nil
}

func (e *environment) connect(ctx context.Context, lease time.Duration) error {
	var err error
	if e.k, e.config, err = connect(e.plane.kubeconfig("admin")); err != nil {
		return err
	}
	if e.dynamic, err = dynamic.NewForConfig(e.config); err != nil {
		return err
	}
	if e.agent, err = startAgent(ctx, e.plane.kubeconfig("agent"), lease); err != nil {
		return err
	}
	if e.kubelet, e.agent.kubeletPort, err = serveKubelet(e.plane.path("pki", "kubelet.crt"), e.plane.path("pki", "kubelet.key")); err != nil {
		return err
	}
	if e.checker, err = startChecker(ctx, e.k); err != nil {
		return err
	}
	return e.makeAccount(ctx)
}

func (e *environment) stop() {
	e.cancel()
	if e.kubelet != nil {
		_ = e.kubelet.Close()
	}
	e.plane.stop()
}

func (o *options) cases() []testCase {
	var all []testCase
	for _, group := range []func(*options) []testCase{slicesCases, gangCases, workloadCases, launchCases, faultCases, crashCases, policyCases, specialCases, throughputCases} {
		all = append(all, group(o)...)
	}
	var chosen []testCase
	for _, c := range all {
		if o.only == nil || o.only.MatchString(c.name) {
			chosen = append(chosen, c)
		}
	}
	rank := map[string]int{}
	for i, p := range profiles {
		rank[p.name] = i
	}
	sort.SliceStable(chosen, func(a, b int) bool { return rank[chosen[a].profile] < rank[chosen[b].profile] })
	return chosen
}

type tally struct{ passed, failed, skipped int }

func (n *tally) add(skipped string, t *T) {
	verdict, lines := "ok  ", t.notes
	switch {
	case len(t.failures) > 0:
		verdict, lines = "FAIL", append(lines, t.failures...)
		n.failed++
	case skipped != "":
		verdict, lines = "skip", append(lines, skipped)
		n.skipped++
	default:
		n.passed++
	}
	fmt.Printf("%s %6.1f s  %s\n", verdict, time.Since(t.began).Seconds(), t.name)
	for _, line := range lines {
		fmt.Println("       " + strings.ReplaceAll(line, "\n", "\n       "))
	}
}

// runCases: the end-to-end cases. It ends with the line of totals, and fails when a case failed.
func runCases(args []string) error {
	var o options
	flags := flag.NewFlagSet("e2e", flag.ExitOnError)
	only := flags.String("only", "", "only cases whose name matches this regular expression")
	isList := flags.Bool("list", false, "print the names of the cases")
	flags.StringVar(&o.repository, "repository", ".", "root of the checkout")
	flags.StringVar(&o.binary, "queued", "", "the server")
	flags.StringVar(&o.submit, "submit", "", "the command line client")
	flags.StringVar(&o.data, "data", "../shared", "folder with inventory and conformance")
	flags.StringVar(&o.work, "work", "", "folder for everything that is written")
	flags.Int64Var(&o.seed, "seed", 1, "of what is random")
	flags.IntVar(&o.minor, "minor", 37, "minor version of this control plane")
	flags.BoolVar(&o.isFull, "full", false, "benchmarks in full size")
	flags.BoolVar(&o.isKept, "keep", false, "keep the folder")
	_ = flags.Parse(args)
	klog.LogToStderr(false) // of client-go: broken watches are part of the plan
	klog.SetOutput(io.Discard)
	if *only != "" {
		var err error
		if o.only, err = regexp.Compile(*only); err != nil {
			return err
		}
	}
	cases := o.cases()
	if *isList {
		for _, c := range cases {
			fmt.Printf("%-14s %s\n", c.profile, c.name)
		}
		return nil
	}
	if o.work == "" {
		return fmt.Errorf("-work is required")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	began := time.Now()
	total, err := o.runAll(ctx, cases)
	fmt.Printf("-- seed %d, %.0f s\n", o.seed, time.Since(began).Seconds())
	fmt.Printf("%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped)
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err == nil && total.failed > 0 {
		os.Exit(1)
	}
	return err
}

func (o *options) runAll(ctx context.Context, cases []testCase) (total tally, err error) {
	for profile := range profiles {
		var mine []testCase
		for _, c := range cases {
			if c.profile == profiles[profile].name {
				mine = append(mine, c)
			}
		}
		if len(mine) == 0 || ctx.Err() != nil {
			continue
		}
		e, err := startEnvironment(ctx, o, profile)
		if err != nil {
			total.failed += len(mine)
			fmt.Printf("FAIL control plane %s: %v\n", profiles[profile].name, err)
			continue
		}
		for _, c := range mine {
			if ctx.Err() == nil {
				total.add(e.verdict(ctx, c))
			}
		}
		e.stop()
	}
	return total, nil
}
