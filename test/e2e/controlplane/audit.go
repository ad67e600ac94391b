package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"time"
)

// request is one line of the API server's audit log: a request that it has answered.
type request struct {
	Verb  string `json:"verb"`
	URI   string `json:"requestURI"`
	Agent string `json:"userAgent"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Group       string `json:"apiGroup"`
	} `json:"objectRef"`
	Answer struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

func (r *request) isWrite() bool {
	return r.Verb == "create" || r.Verb == "update" || r.Verb == "patch" || r.Verb == "delete" || r.Verb == "deletecollection"
}

// isQueued: not of the scheduler, the controllers, or the tests themselves.
func (r *request) isQueued() bool {
	return strings.HasPrefix(r.User.Username, "system:serviceaccount:") && !strings.HasPrefix(r.User.Username, "system:serviceaccount:kube-system:")
}

// audit reads all requests that were received since a moment.
func (p *plane) audit(since time.Time) ([]request, error) {
	time.Sleep(600 * time.Millisecond) // the log is written in batches
	file, err := os.Open(p.path("audit.log"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var requests []request
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<16), 1<<24)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			continue // the last line may be half written
		}
		if !r.Received.Before(since) {
			requests = append(requests, r)
		}
	}
	return requests, lines.Err()
}
