package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

type object = unstructured.Unstructured

// Kinds that cases create: plural, and whether they live in a namespace.
var kinds = map[string]struct {
	plural       string
	isNamespaced bool
}{
	"Node": {"nodes", false}, "Namespace": {"namespaces", false}, "Pod": {"pods", true}, "Service": {"services", true}, "ConfigMap": {"configmaps", true},
	"ServiceAccount": {"serviceaccounts", true}, "ResourceQuota": {"resourcequotas", true}, "Job": {"jobs", true}, "PriorityClass": {"priorityclasses", false},
	"DeviceClass": {"deviceclasses", false}, "ResourceSlice": {"resourceslices", false}, "DeviceTaintRule": {"devicetaintrules", false},
	"ResourceClaim": {"resourceclaims", true}, "ResourceClaimTemplate": {"resourceclaimtemplates", true},
	"ValidatingAdmissionPolicy": {"validatingadmissionpolicies", false}, "ValidatingAdmissionPolicyBinding": {"validatingadmissionpolicybindings", false},
	"Role": {"roles", true}, "RoleBinding": {"rolebindings", true}, "ClusterRole": {"clusterroles", false}, "ClusterRoleBinding": {"clusterrolebindings", false},
}

// readManifests reads all documents of a YAML or JSON file; Lists are opened.
func readManifests(path string) ([]*object, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := parseManifests(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

func parseManifests(text []byte) ([]*object, error) {
	var objects []*object
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 1<<16)
	for {
		var content map[string]any
		if err := decoder.Decode(&content); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if content == nil {
			continue
		}
		one := &object{Object: content}
		if !one.IsList() {
			objects = append(objects, one)
			continue
		}
		items, err := one.ToList()
		if err != nil {
			return nil, err
		}
		for i := range items.Items {
			objects = append(objects, &items.Items[i])
		}
	}
}

func (e *environment) resource(o *object) (dynamic.ResourceInterface, error) {
	kind, ok := kinds[o.GetKind()]
	if !ok {
		return nil, fmt.Errorf("the tests do not know kind %s", o.GetKind())
	}
	version := schema.FromAPIVersionAndKind(o.GetAPIVersion(), o.GetKind()).GroupVersion()
	all := e.dynamic.Resource(version.WithResource(kind.plural))
	if !kind.isNamespaced {
		return all, nil
	}
	ns := o.GetNamespace()
	if ns == "" {
		ns = "default"
	}
	return all.Namespace(ns), nil
}

// clean takes off what only a server writes.
func clean(o *object) *object {
	o = o.DeepCopy()
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "ownerReferences", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if o.GetName() != "" {
		o.SetGenerateName("")
	}
	return o
}

// create makes an object, and its status where it brings one.
func (e *environment) create(ctx context.Context, o *object) error {
	api, err := e.resource(o)
	if err != nil {
		return err
	}
	o = clean(o)
	status, hasStatus := o.Object["status"]
	made, err := api.Create(ctx, o, meta.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	for try := 0; hasStatus; try++ {
		made.Object["status"] = status
		if _, err = api.UpdateStatus(ctx, made, meta.UpdateOptions{}); err == nil {
			return nil
		}
		if !apierrors.IsConflict(err) || try > 20 {
			return fmt.Errorf("status of %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if made, err = api.Get(ctx, o.GetName(), meta.GetOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (e *environment) createText(ctx context.Context, text string) error {
	objects, err := parseManifests([]byte(text))
	if err != nil {
		return err
	}
	for _, o := range objects {
		if err := e.create(ctx, o); err != nil && !apierrors.IsAlreadyExists(errors.Unwrap(err)) {
			return err
		}
	}
	return nil
}

// str reads a text field that may be absent.
func str(content map[string]any, path string) string {
	value, _, _ := unstructured.NestedString(content, strings.Split(path, ".")...)
	return value
}
