// Decodes the answers of an API server: lists of Jobs, pods and nodes, and its errors.
//
// Lists have pages. An item without the labels of a gang of this server is left out; numbers are
// clamped, and texts shortened.
//
// Threads: pure. Errors: corrupt (not what Kubernetes answers), exhausted (too many items), and of
// error_of_kubernetes() the kinds of kubernetes.hpp.
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

// Append a page's items; the result is where the next page continues, "": it was the last one.
Result<std::string> read_job_page(std::string_view body, std::string_view mark,
                                  std::vector<KubernetesJob>& jobs);
Result<std::string> read_pod_page(std::string_view body, std::string_view mark,
                                  std::vector<KubernetesPod>& pods);
Result<std::string> read_node_page(std::string_view body, std::vector<KubernetesNode>& nodes);
// Adds what the page's pods request on their nodes, without those of this server; `pods` counts
// them.
Result<std::string> read_use_page(std::string_view body, std::string_view mark,
                                  std::map<std::string, KubernetesAmounts>& used, size_t& pods);

// The uid of a created object.
Result<std::string> read_uid(std::string_view body);

Result<void> check_kubernetes_answer(int status, std::string_view body);

// "1500m" is 1500, "2" is 2000, "1Ki" is 1024000: thousandths. Errors: invalid.
Result<int64_t> parse_quantity_milli(std::string_view text);

// "0,2-4" as Jobs list indexes; those past `hosts` are left out. Errors: corrupt.
Result<std::set<domain::HostIndex>> parse_indexes(std::string_view text, uint32_t hosts);

}  // namespace trainyard::launch
