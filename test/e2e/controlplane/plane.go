package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// planeOptions says how a control plane differs from the defaults of Kubernetes.
type planeOptions struct {
	Dir            string
	Gates          string // feature gates of all components but kubectl
	RuntimeConfig  string
	Controllers    []string // beside those that always run
	SchedulerQPS   int      // 0: the default, 50 (burst: twice that)
	ManagerQPS     int      // 0: the default, 20 (burst: one and a half times that)
	APIServerFlags []string
	ManagerFlags   []string
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`

// The controllers that a cluster with jobs and devices needs; fewer start faster.
var controllers = []string{"namespace-controller", "serviceaccount-controller", "serviceaccount-token-controller", "garbage-collector-controller",
	"resourceclaim-controller", "job-controller", "endpointslice-controller", "pod-garbage-collector-controller", "ttl-after-finished-controller",
	"resourcequota-controller", "node-lifecycle-controller", "taint-eviction-controller", "device-taint-eviction-controller", "clusterrole-aggregation-controller",
	"root-ca-certificate-publisher-controller"}

// plane is a running control plane: one process per component, all on loopback, ended with us whatever ends us.
type plane struct {
	options planeOptions
	ports   struct{ etcd, peer, api, manager, scheduler int }
	procs   map[string]*process
	admin   *http.Client
	server  string
}

type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// spawner starts all processes from one thread that lives as long as we do: the kernel ends a child (Pdeathsig) when
// the thread that started it ends, and Go's threads come and go.
var spawner = sync.OnceValue(func() chan func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func spawn(name string, cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks, and insists after a while.
func (p *process) stop(patience time.Duration) {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(patience):
		p.kill()
	}
}

func freePorts(n int) ([]int, error) {
	var ports []int
	for i := 0; i < n; i++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (p *plane) path(elem ...string) string {
	return filepath.Join(append([]string{p.options.Dir}, elem...)...)
}
func (p *plane) kubeconfig(user string) string {
	return p.path(user + ".kubeconfig")
}

// startPlane returns when all components say that they are ready.
func startPlane(options planeOptions) (*plane, error) {
	p := &plane{options: options, procs: map[string]*process{}}
	if err := p.prepare(); err != nil {
		return nil, err
	}
	for _, name := range []string{"etcd", "apiserver", "controller-manager", "scheduler"} {
		if err := p.start(name); err != nil {
			p.stop()
			return nil, err
		}
	}
	for _, name := range []string{"controller-manager", "scheduler"} {
		if err := p.ready(name); err != nil {
			p.stop()
			return nil, err
		}
	}
	return p, nil
}

func (p *plane) prepare() error {
	if err := os.MkdirAll(p.options.Dir, 0o700); err != nil {
		return err
	}
	if err := writePKI(p.path("pki")); err != nil {
		return err
	}
	ports, err := freePorts(5)
	if err != nil {
		return err
	}
	p.ports.etcd, p.ports.peer, p.ports.api, p.ports.manager, p.ports.scheduler = ports[0], ports[1], ports[2], ports[3], ports[4]
	p.server = fmt.Sprintf("https://127.0.0.1:%d", p.ports.api)
	for _, user := range []string{"admin", "agent", "scheduler", "manager"} {
		if err := writeKubeconfig(p.kubeconfig(user), p.server, p.path("pki"), user); err != nil {
			return err
		}
	}
	if err := os.WriteFile(p.path("audit-policy.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	p.admin, err = p.adminClient()
	return err
}

func (p *plane) adminClient() (*http.Client, error) {
	certificate, err := tls.LoadX509KeyPair(p.path("pki", "admin.crt"), p.path("pki", "admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(p.path("pki", "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: pool}}}, nil
}

func (p *plane) start(name string) error {
	flags := map[string]func() ([]string, error){
		"etcd": p.etcdFlags, "apiserver": p.apiserverFlags, "controller-manager": p.managerFlags, "scheduler": p.schedulerFlags,
	}
	args, err := flags[name]()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(p.path(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, append([]string{name}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, p.options.Dir
	if p.procs[name], err = spawn(name, cmd); err != nil {
		return err
	}
	if name == "apiserver" {
		return p.ready(name)
	}
	return nil
}

func (p *plane) ready(name string) error {
	if name == "etcd" { // by what it serves
		name = "apiserver"
	}
	url := map[string]string{
		"apiserver":          p.server + "/readyz",
		"controller-manager": fmt.Sprintf("https://127.0.0.1:%d/healthz", p.ports.manager),
		"scheduler":          fmt.Sprintf("https://127.0.0.1:%d/readyz", p.ports.scheduler),
	}[name]
	last := ""
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if p.procs[name].hasEnded() {
			return fmt.Errorf("%s ended: %v (see %s)", name, p.procs[name].err, p.path(name+".log"))
		}
		status, body, err := p.get(url)
		if err == nil && status == http.StatusOK {
			return nil
		}
		last = fmt.Sprint(status, " ", strings.TrimSpace(body), " ", err)
	}
	return fmt.Errorf("%s is not ready: %s", name, last)
}

func (p *plane) get(url string) (int, string, error) {
	answer, err := p.admin.Get(url)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// restart ends a component (killed when `hard`) and starts it again, `pause` later.
func (p *plane) restart(name string, hard bool, pause time.Duration) error {
	if hard {
		p.procs[name].kill()
	} else {
		p.procs[name].stop(20 * time.Second)
	}
	time.Sleep(pause)
	if err := p.start(name); err != nil {
		return err
	}
	return p.ready(name)
}

func (p *plane) stop() {
	for _, name := range []string{"scheduler", "controller-manager", "apiserver", "etcd"} {
		if proc := p.procs[name]; proc != nil {
			proc.stop(10 * time.Second)
		}
	}
}

func (p *plane) etcdURL(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

func (p *plane) etcdFlags() ([]string, error) {
	return []string{"-data-dir", p.path("etcd"), "-client", p.etcdURL(p.ports.etcd), "-peer", p.etcdURL(p.ports.peer), "-fsync=false"}, nil
}

func (p *plane) gates() []string {
	if p.options.Gates == "" {
		return nil
	}
	return []string{"--feature-gates=" + p.options.Gates}
}

func (p *plane) apiserverFlags() ([]string, error) {
	pki := p.path("pki")
	flags := []string{
		"--etcd-servers=" + p.etcdURL(p.ports.etcd), "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", p.ports.api),
		"--tls-cert-file=" + pki + "/apiserver.crt", "--tls-private-key-file=" + pki + "/apiserver.key", "--client-ca-file=" + pki + "/ca.crt",
		"--requestheader-client-ca-file=" + pki + "/front-ca.crt", "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + pki + "/front-proxy.crt", "--proxy-client-key-file=" + pki + "/front-proxy.key",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + pki + "/sa.pub", "--service-account-signing-key-file=" + pki + "/sa.key",
		"--service-cluster-ip-range=10.0.0.0/16", "--authorization-mode=RBAC", "--allow-privileged=true", "--profiling=false", "--v=1",
		"--kubelet-preferred-address-types=InternalIP",
		"--audit-policy-file=" + p.path("audit-policy.yaml"), "--audit-log-path=" + p.path("audit.log"), "--audit-log-mode=batch", "--audit-log-batch-max-wait=200ms",
	}
	if p.options.RuntimeConfig != "" {
		flags = append(flags, "--runtime-config="+p.options.RuntimeConfig)
	}
	return append(append(flags, p.gates()...), p.options.APIServerFlags...), nil
}

func orDefault(value, otherwise int) int {
	if value == 0 {
		return otherwise
	}
	return value
}

func (p *plane) managerFlags() ([]string, error) {
	pki, config, qps := p.path("pki"), p.kubeconfig("manager"), orDefault(p.options.ManagerQPS, 20)
	flags := []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.ports.manager), "--tls-cert-file=" + pki + "/manager-server.crt", "--tls-private-key-file=" + pki + "/manager-server.key",
		"--client-ca-file=" + pki + "/ca.crt", "--root-ca-file=" + pki + "/ca.crt", "--service-account-private-key-file=" + pki + "/sa.key",
		"--use-service-account-credentials=true", "--leader-elect=false", "--controllers=" + strings.Join(append(append([]string{}, controllers...), p.options.Controllers...), ","),
		fmt.Sprintf("--kube-api-qps=%d", qps), fmt.Sprintf("--kube-api-burst=%d", qps*3/2), "--v=1", "--profiling=false",
	}
	return append(append(flags, p.gates()...), p.options.ManagerFlags...), nil
}

func (p *plane) schedulerFlags() ([]string, error) {
	pki, kubeconfig, qps := p.path("pki"), p.kubeconfig("scheduler"), orDefault(p.options.SchedulerQPS, 50)
	config := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n" +
		fmt.Sprintf("clientConnection: {kubeconfig: %q, qps: %d, burst: %d}\n", kubeconfig, qps, 2*qps)
	if err := os.WriteFile(p.path("scheduler.yaml"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	flags := []string{"--config=" + p.path("scheduler.yaml"), "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.ports.scheduler), "--tls-cert-file=" + pki + "/scheduler-server.crt",
		"--tls-private-key-file=" + pki + "/scheduler-server.key", "--client-ca-file=" + pki + "/ca.crt", "--v=1"}
	return append(flags, p.gates()...), nil
}

type list []string

func (l *list) String() string         { return strings.Join(*l, " ") }
func (l *list) Set(value string) error { *l = append(*l, value); return nil }

// runUp: a control plane by hand; it runs until it is asked to end.
func runUp(args []string) error {
	var options planeOptions
	var controllers, api, manager list
	flags := flag.NewFlagSet("up", flag.ExitOnError)
	flags.StringVar(&options.Dir, "dir", "", "folder for certificates, kubeconfigs, logs and data (required)")
	flags.StringVar(&options.Gates, "feature-gates", "", "feature gates of all components")
	flags.StringVar(&options.RuntimeConfig, "runtime-config", "", "of the API server")
	flags.IntVar(&options.SchedulerQPS, "scheduler-qps", 0, "requests a second of the scheduler (0: its default)")
	flags.IntVar(&options.ManagerQPS, "manager-qps", 0, "requests a second of the controllers (0: their default)")
	flags.Var(&controllers, "controller", "one more controller (repeat)")
	flags.Var(&api, "apiserver-flag", "one more flag (repeat)")
	flags.Var(&manager, "manager-flag", "one more flag (repeat)")
	_ = flags.Parse(args)
	if options.Dir == "" {
		return errors.New("-dir is required")
	}
	options.Controllers, options.APIServerFlags, options.ManagerFlags = controllers, api, manager
	var err error
	if options.Dir, err = filepath.Abs(options.Dir); err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	p, err := startPlane(options)
	if err != nil {
		return err
	}
	defer p.stop()
	state, _ := json.Marshal(map[string]any{"server": p.server, "kubeconfig": p.kubeconfig("admin"), "pid": os.Getpid()})
	fmt.Println(string(state))
	<-end
	return nil
}
