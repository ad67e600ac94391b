/* Every object that drivers publish in the wild loads with all checks on. The collection lies beside the checkout;
 * without it there is nothing to test and the test says so. */
#include "test/support/cmocka.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "allocator/snapshot.h"
#include "queued/manifest/yaml.h"

#include "allocator/base/banned.h"

#define INVENTORY "../shared/inventory"

static bool is_ours(const json_t *object)
{
    const char *kind = json_string_value(json_object_get(object, "kind"));

    return kind && (strcmp(kind, "ResourceSlice") == 0 || strcmp(kind, "DeviceClass") == 0 ||
                    strcmp(kind, "List") == 0 || strcmp(kind, "DeviceTaintRule") == 0 || strcmp(kind, "Node") == 0);
}

static size_t load_file(const char *folder, const char *file)
{
    struct features features = features_default(37);
    struct snapshot_builder *builder = snapshot_builder_new(&features, true);
    struct manifest *manifest;
    struct error err = {0};
    char path[1024];
    size_t n_wrong = 0;

    snprintf(path, sizeof(path), "%s/%s/%s", INVENTORY, folder, file);
    if (manifest_read_file(path, &MANIFEST_LIMITS_DEFAULT, &manifest, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < manifest_n_documents(manifest); i++) {
        json_t *object = manifest_document(manifest, i);

        memset(&err, 0, sizeof(err));
        if (!is_ours(object) || snapshot_builder_put(builder, object, &err) == 0)
            continue;
        print_error("%s: document %zu: %s: %s\n", file, i, err.field, err.text);
        n_wrong++;
    }
    snapshot_unref(snapshot_builder_build(builder));
    snapshot_builder_free(builder);
    manifest_free(manifest);
    return n_wrong;
}

static void load_folder(const char *folder)
{
    struct dirent **entries;
    char path[1024];
    size_t n_wrong = 0;
    int n;

    snprintf(path, sizeof(path), "%s/%s", INVENTORY, folder);
    n = scandir(path, &entries, NULL, alphasort);
    if (n < 0) {
        print_message("%s is not there: skipped\n", path);
        skip();
    }
    for (int i = 0; i < n; i++) {
        if (strstr(entries[i]->d_name, ".yaml"))
            n_wrong += load_file(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    assert_int_equal(n_wrong, 0);
}

static void test_inventory__slices_of_drivers_load(void **state)
{
    (void)state;
    load_folder("slices");
}

static void test_inventory__classes_of_drivers_load(void **state)
{
    (void)state;
    load_folder("classes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inventory__slices_of_drivers_load),
        cmocka_unit_test(test_inventory__classes_of_drivers_load),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
