package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is one queued that a case runs: its process, and its REST interface over the Unix socket.
type server struct {
	binary string
	dir    string // socket, log, kubeconfig
	state  string // in dir, unless two share it
	args   []string
	proc   *process
	client *http.Client
}

// What the REST interface says of a job, as far as the cases look at it.
type job struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	State     string    `json:"state"`
	Reason    string    `json:"reason"`
	Attempt   int       `json:"attempt"`
	Submitted time.Time `json:"submittedAt"`
	Started   time.Time `json:"startedAt"`
	Ended     time.Time `json:"endedAt"`
	ExitCode  *int      `json:"exitCode"`
	Members   struct {
		Total, Running, Succeeded, Failed int
	} `json:"members"`
	Placement struct {
		Members []struct {
			Group  string `json:"group"`
			Index  int    `json:"index"`
			Pod    string `json:"pod"`
			Node   string `json:"node"`
			Claims []struct {
				Name    string   `json:"name"`
				Claim   string   `json:"podClaim"`
				Devices []device `json:"devices"`
			} `json:"claims"`
		} `json:"members"`
	} `json:"placement"`
	Chosen []struct {
		Claim       string `json:"claim"`
		Request     string `json:"request"`
		Alternative string `json:"alternative"`
	} `json:"chosen"`
}

type device struct {
	Request string `json:"request"`
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
}

func (j *job) hasEnded() bool {
	return j.State == "Succeeded" || j.State == "Failed" || j.State == "Cancelled"
}

// problem is a refusal in the server's words.
type problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Field  string `json:"field"`
}

func (p *problem) Error() string {
	return fmt.Sprintf("%d %s %s: %s", p.Status, p.Code, p.Field, p.Detail)
}

func newServer(binary, dir string, args ...string) *server {
	s := &server{binary: binary, dir: dir, state: filepath.Join(dir, "state"), args: args}
	socket := filepath.Join(dir, "s")
	s.client = &http.Client{Timeout: 60 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	return s
}

func (s *server) log() string { return filepath.Join(s.dir, "queued.log") }

// launch starts the process and returns at once.
func (s *server) launch(extra ...string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"--state", s.state, "--socket", filepath.Join(s.dir, "s"), "--listen", "127.0.0.1:0", "--log-level", "info"}, s.args...)
	cmd := exec.Command(s.binary, append(args, extra...)...)
	cmd.Stdout, cmd.Stderr = log, log
	s.proc, err = spawn("queued", cmd)
	return err
}

// start starts it and waits until it is ready.
func (s *server) start(extra ...string) error {
	if err := s.launch(extra...); err != nil {
		return err
	}
	return s.ready(30 * time.Second)
}

func (s *server) isReady() bool {
	answer, err := s.client.Get("http://queued/readyz")
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

func (s *server) ready(limit time.Duration) error {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if s.isReady() {
			return nil
		}
		if s.proc.hasEnded() {
			return fmt.Errorf("queued ended: %v\n%s", s.proc.err, s.tail(12))
		}
	}
	return fmt.Errorf("queued is not ready after %s\n%s", limit, s.tail(12))
}

// stop ends it in good order and reports if it did not end well.
func (s *server) stop() error {
	if s.proc == nil || s.proc.hasEnded() {
		return nil
	}
	s.proc.stop(10 * time.Second)
	if s.proc.cmd.ProcessState.ExitCode() != 0 {
		return fmt.Errorf("queued ended with %s\n%s", s.proc.cmd.ProcessState, s.tail(12))
	}
	return nil
}

// wasKilled: it ended by SIGKILL, as --crash-at does.
func (s *server) wasKilled() bool {
	status, ok := s.proc.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (s *server) tail(n int) string {
	text, _ := os.ReadFile(s.log())
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return "    " + strings.Join(lines, "\n    ")
}

// call sends a request; a refusal is a *problem. `out` may be nil, a *string, or something to decode into.
func (s *server) call(method, path, contentType string, body []byte, out any) error {
	request, err := http.NewRequest(method, "http://queued"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 300 {
		p := &problem{}
		if json.Unmarshal(text, p) != nil || p.Status == 0 {
			p = &problem{Status: answer.StatusCode, Detail: string(text)}
		}
		return p
	}
	switch o := out.(type) {
	case nil:
		return nil
	case *string:
		*o = string(text)
		return nil
	default:
		return json.Unmarshal(text, out)
	}
}

func (s *server) apply(manifests string) error {
	return s.call("POST", "/v1/apply", "application/yaml", []byte(manifests), nil)
}

// submit hands in documents (JSON values) or YAML text.
func (s *server) submit(query string, documents any) ([]job, error) {
	var out struct{ Jobs []job }
	contentType, body := "application/yaml", []byte(nil)
	if text, ok := documents.(string); ok {
		body = []byte(text)
	} else {
		var err error
		contentType = "application/json"
		if body, err = json.Marshal(map[string]any{"documents": documents}); err != nil {
			return nil, err
		}
	}
	err := s.call("POST", "/v1/jobs?"+query, contentType, body, &out)
	return out.Jobs, err
}

func (s *server) job(id int64) (job, error) {
	var j job
	return j, s.call("GET", "/v1/jobs/"+strconv.FormatInt(id, 10), "", nil, &j)
}

// wait waits until the job is in the state ("ended": any final one); it returns what the job is then.
func (s *server) wait(id int64, state string, limit time.Duration) (job, error) {
	var j job
	for end := time.Now().Add(limit); ; {
		left := max(time.Until(end), 0)
		path := fmt.Sprintf("/v1/jobs/%d?waitFor=%s&timeout=%d", id, url.QueryEscape(state), int(min(left, 20*time.Second).Seconds()))
		if err := s.call("GET", path, "", nil, &j); err != nil {
			return j, err
		}
		if strings.EqualFold(j.State, state) || (state == "ended" && j.hasEnded()) {
			return j, nil
		}
		if j.hasEnded() || left <= 0 {
			return j, fmt.Errorf("job %d (%s) is %s, not %s: %s", j.ID, j.Name, j.State, state, j.Reason)
		}
	}
}

func (s *server) cancel(id int64) error {
	return s.call("POST", fmt.Sprintf("/v1/jobs/%d/cancel", id), "", nil, nil)
}

func (s *server) explain(id int64) (map[string]any, error) {
	var out map[string]any
	return out, s.call("GET", fmt.Sprintf("/v1/jobs/%d/explain", id), "", nil, &out)
}

func (s *server) items(path string) ([]map[string]any, error) {
	var out struct{ Items []map[string]any }
	return out.Items, s.call("GET", path, "", nil, &out)
}

// metric is the value of a measurement without labels.
func (s *server) metric(name string) (float64, error) {
	var text string
	if err := s.call("GET", "/metrics", "", nil, &text); err != nil {
		return 0, err
	}
	for _, line := range strings.Split(text, "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, errors.New("no metric " + name)
}
