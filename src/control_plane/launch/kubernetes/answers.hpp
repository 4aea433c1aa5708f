// Decodes the answers of an API server: lists of Jobs, pods and nodes, and its errors.
//
// Lists have pages. Items without the labels of this server's gangs are left out, numbers are
// limited, and texts shortened.
//
// Threads: pure. Errors: corrupt (not an answer of Kubernetes), exhausted (too many items), and
// those of kubernetes.hpp from check_kubernetes_answer().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "launch/kubernetes/kubernetes.hpp"

namespace trainyard::launch {

inline constexpr size_t kKubernetesTextBytesMax = 300;

// Append a page's items. Return the token of the next page; "" after the last one.
Result<std::string> read_job_page(std::string_view body, std::string_view mark,
                                  std::vector<KubernetesJob>& jobs);
Result<std::string> read_pod_page(std::string_view body, std::string_view mark,
                                  std::vector<KubernetesPod>& pods);
Result<std::string> read_node_page(std::string_view body, std::vector<KubernetesNode>& nodes);
// Adds up by node what the page's pods of others request. `pods` counts them.
Result<std::string> read_use_page(std::string_view body, std::string_view mark,
                                  std::map<std::string, KubernetesAmounts>& used, size_t& pods);

// Returns the uid of a created object.
Result<std::string> read_uid(std::string_view body);

Result<void> check_kubernetes_answer(int status, std::string_view body);

// Returns a quantity in thousandths: "1500m" is 1500, "2" is 2000, "1Ki" is 1024000. Errors:
// invalid.
Result<int64_t> parse_quantity_milli(std::string_view text);

// Parses a Job's list of indexes, "0,2-4". Leaves out indexes from `hosts` on. Errors: corrupt.
Result<std::set<domain::HostIndex>> parse_indexes(std::string_view text, uint32_t hosts);

}  // namespace trainyard::launch
