#include "containers/image_source.hpp"

#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <initializer_list>
#include <map>

#include "base/json.hpp"
#include "base/text.hpp"
#include "containers/architecture.hpp"
#include "os/beneath.hpp"
#include "os/files.hpp"
#include "os/process.hpp"

namespace trainyard::containers {
namespace {

constexpr Duration kFetchMax = 2h;  // 18 GB at 20 Mbit/s
constexpr Duration kQueryMax = 1min;
// limit of nested indexes; real images have fewer
constexpr int kIndexDepthMax = 4;
constexpr std::string_view kOci = "oci:", kStorage = "containers-storage:", kRegistry = "docker://";
constexpr std::string_view kFetchedTag = "image";
// prefix of the names of incomplete blobs of skopeo
constexpr std::string_view kIncompleteBlob = "oci-put-blob";

// The paths at which skopeo searches its policy (containers-policy.json(5)); without one it rejects
// all images.
bool has_signature_policy() {
  const char* home = ::getenv("HOME");
  return (home && os::exists(std::string(home) + "/.config/containers/policy.json")) ||
         os::exists("/etc/containers/policy.json");
}

struct OciReference {
  std::string layout, tag;
};

// Splits "PATH:TAG". A tag has no '/', so a ':' before the last '/' belongs to the path.
OciReference split_oci(std::string_view place) {
  const size_t colon = place.rfind(':');
  const size_t slash = place.rfind('/');
  if (colon == std::string_view::npos || (slash != std::string_view::npos && colon < slash))
    return {std::string(place), ""};
  return {std::string(place.substr(0, colon)), std::string(place.substr(colon + 1))};
}

// Returns true for registries on this machine: they may use plain HTTP, since connections do not
// leave it.
bool is_loopback(std::string_view source) {
  source.remove_prefix(kRegistry.size());
  return source.starts_with("127.") || source.starts_with("localhost:") ||
         source.starts_with("localhost/") || source.starts_with("[::1]");
}

// Returns the digest to which a source is pinned; "": none.
std::string pinned_digest(const std::string& source) {
  const size_t at = source.rfind("@sha256:");
  return source.starts_with(kRegistry) && at != std::string::npos ? source.substr(at + 1) : "";
}

Result<void> need_skopeo() {
  if (os::on_path("skopeo")) return ok();
  return not_found("fetching images: skopeo is not on PATH; install the package skopeo",
                   ImageFault::tool_missing);
}

// Returns the environment of programs that query registries. It contains the login, because other
// processes can read arguments.
std::map<std::string, std::string> login_of(const ImageSource& source) {
  if (source.login_file.empty()) return {};
  return {{"REGISTRY_AUTH_FILE", source.login_file}};
}

// Reads the manifest of a source and checks it against a pinned digest.
Result<std::string> inspect(const ImageSource& from) {
  TRY(need_skopeo());
  const std::string& source = from.name;
  std::vector<std::string> words{"skopeo", "inspect", "--raw"};
  if (source.starts_with(kRegistry) && is_loopback(source)) words.push_back("--tls-verify=false");
  words.push_back(source);
  auto requested = os::run_or_fail({words, login_of(from), "", "", kQueryMax});
  if (!requested && requested.error().kind == Kind::cancelled)
    return unavailable("reading the image's manifest: no answer within a minute",
                       ImageFault::unreachable);
  std::string raw = TRY(std::move(requested));
  if (const std::string pinned = pinned_digest(source); !pinned.empty() && sha256(raw) != pinned)
    return corrupt("reading the registry's manifest: its digest is not " + pinned);
  return raw;
}

// Reads a document of a layout and checks it against the digest in its name.
Result<std::string> read_blob(const std::string& blobs, const std::string& digest) {
  std::string bytes =
      TRY(os::read_file(blobs + "/sha256/" + digest.substr(7), kImageDocumentBytesMax));
  if (sha256(bytes) != digest)
    return corrupt("reading the image's blob " + digest + ": its content has another digest");
  return bytes;
}

struct FoundManifest {
  std::string digest;
  ImageDocument document;
};

// Reads (index ->) manifest. Each document must have the digest in its name.
Result<FoundManifest> follow(const std::string& blobs, ImageReference at) {
  for (int depth = 0; depth < kIndexDepthMax; depth++) {
    auto document = TRY(read_manifest(TRY(read_blob(blobs, at.digest)), image_architecture()));
    if (!document.is_index) return FoundManifest{at.digest, std::move(document)};
    at = document.next;
  }
  return invalid("reading the image: indexes nested too deeply");
}

// Reads tag -> (index ->) manifest.
Result<FoundManifest> find_manifest(const LayoutPaths& layout, std::string_view tag) {
  const std::string index =
      TRY(os::read_file(layout.directory + "/index.json", kImageDocumentBytesMax)
              .in("reading the OCI layout " + layout.directory));
  return follow(layout.blobs,
                TRY(find_in_index(index, tag).in("the OCI layout " + layout.directory)));
}

Result<DescribedImage> described(const std::string& blobs, FoundManifest found) {
  auto config = TRY(read_image_config(TRY(read_blob(blobs, found.document.next.digest))));
  return DescribedImage{std::move(config), std::move(found.document.layers)};
}

}  // namespace

std::string sha256(std::string_view bytes) {
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), hash, &length, EVP_sha256(), nullptr) != 1) return "";
  return "sha256:" + to_hex({reinterpret_cast<const char*>(hash), length});
}

Result<LoginFile> LoginFile::write(const std::string& directory, const ImageRights::Login& login) {
  TRY(os::make_directories(directory, 0700));
  static std::atomic<uint64_t> number{0};
  const std::string path =
      directory + "/login-" + std::to_string(::getpid()) + "-" + std::to_string(++number);
  LoginFile file(path);
  const std::string pair = login.username + ":" + login.password;
  const Json logins{{"auths", {{login.host, {{"auth", to_base64(pair)}}}}}};
  TRY(os::write_file(path, dump(logins), 0600));
  return file;
}

LoginFile::~LoginFile() {
  if (!path_.empty()) (void)os::remove_all(path_);
}

Result<std::optional<OpenedLayout>> open_layout(const std::string& source,
                                                const std::vector<std::string>& directories) {
  if (!source.starts_with(kOci)) return std::optional<OpenedLayout>();
  const auto place = split_oci(std::string_view(source).substr(kOci.size()));
  for (const auto& directory : directories) {
    const std::string above = directory.ends_with('/') ? directory : directory + "/";
    if (!place.layout.starts_with(above)) continue;
    os::File layout =
        TRY(os::open_confined_directory_beneath(directory, place.layout.substr(above.size())));
    // The path uses this process's descriptor, so that programs that it starts can open the layout.
    std::string reached = std::string(kOci) + "/proc/" + std::to_string(::getpid()) + "/fd/" +
                          std::to_string(layout.descriptor()) +
                          (place.tag.empty() ? "" : ":" + place.tag);
    return std::optional(OpenedLayout{std::move(layout), std::move(reached)});
  }
  return std::optional<OpenedLayout>();
}

Result<void> check_source(const std::string& source) {
  if (!source.starts_with(kOci) && !source.starts_with(kStorage) && !source.starts_with(kRegistry))
    return invalid("'" + shorten(source, 100) +
                   "': it must start with 'oci:', 'containers-storage:' or 'docker://'");
  if (source.find('\0') != std::string::npos)
    return invalid("invalid image: its name has a zero byte");
  return ok();
}

Result<std::string> digest_of(const ImageSource& from) {
  const std::string& source = from.name;
  if (source.starts_with(kOci)) {
    const auto place = split_oci(std::string_view(source).substr(kOci.size()));
    const std::string index =
        TRY(os::read_file(place.layout + "/index.json", kImageDocumentBytesMax));
    return TRY(find_in_index(index, place.tag)).digest;
  }
  if (std::string pinned = pinned_digest(source); !pinned.empty()) return pinned;
  return sha256(TRY(inspect(from)));
}

Result<std::vector<ImageReference>> layers_of(const ImageSource& from) {
  const std::string& source = from.name;
  if (source.starts_with(kOci)) {
    const auto place = split_oci(std::string_view(source).substr(kOci.size()));
    return TRY(find_manifest({place.layout, place.layout + "/blobs"}, place.tag)).document.layers;
  }
  // The layers of podman's storage are unknown until they are packed.
  if (!source.starts_with(kRegistry)) return std::vector<ImageReference>();
  const size_t slash = source.rfind('/');
  const size_t name_end = std::min(source.find('@', slash), source.find(':', slash));
  ImageSource at = from;
  for (int depth = 0; depth < kIndexDepthMax; depth++) {
    auto document = TRY(read_manifest(TRY(inspect(at)), image_architecture()));
    if (!document.is_index) return std::move(document.layers);
    at.name = source.substr(0, name_end) + "@" + document.next.digest;
  }
  return invalid("reading the image: indexes nested too deeply");
}

Result<void> fetch(const ImageSource& from, const LayoutPaths& to,
                   const std::function<bool()>& watch) {
  TRY(need_skopeo());
  const std::string& source = from.name;
  TRY(os::make_directories(to.blobs + "/sha256", 0700));
  // skopeo selects the image for this machine, and supports Docker's formats. Signatures are
  // checked as the machine's policy.json requires, and then omitted, because a layout cannot
  // contain them.
  std::vector<std::string> words{"skopeo"};
  if (!has_signature_policy()) words.push_back("--insecure-policy");
  words.insert(words.end(),
               {"copy", "--quiet", "--remove-signatures", "--dest-shared-blob-dir=" + to.blobs,
                "--dest-oci-accept-uncompressed-layers"});
  if (source.starts_with(kRegistry) && is_loopback(source))
    words.push_back("--src-tls-verify=false");
  words.push_back(source);
  words.push_back("oci:" + to.directory + ":" + std::string(kFetchedTag));
  os::Command command{words, login_of(from), "", "", kFetchMax};
  command.watch = watch;
  TRY(os::run_or_fail(command));
  return ok();
}

uint64_t incomplete_blob_bytes(const LayoutPaths& to) {
  uint64_t bytes = 0;
  const auto names = os::list_directory(to.directory);
  if (!names) return 0;
  for (const auto& name : *names) {
    struct stat status;
    if (name.starts_with(kIncompleteBlob) &&
        ::stat((to.directory + "/" + name).c_str(), &status) == 0)
      bytes += uint64_t(status.st_size);
  }
  return bytes;
}

Result<DescribedImage> describe(const LayoutPaths& layout) {
  return described(layout.blobs, TRY(find_manifest(layout, kFetchedTag)));
}

ImageSource pinned_to(ImageSource source, const std::string& digest) {
  if (!source.name.starts_with(kRegistry) || !pinned_digest(source.name).empty()) return source;
  const size_t colon = source.name.find(':', source.name.rfind('/'));
  source.name = source.name.substr(0, colon) + "@" + digest;
  return source;
}

Result<void> check_fetched(const ImageSource& from, const std::string& digest,
                           const DescribedImage& image) {
  if (!from.name.starts_with(kOci)) return ok();
  const std::string blobs =
      split_oci(std::string_view(from.name).substr(kOci.size())).layout + "/blobs";
  const auto wanted = TRY(described(blobs, TRY(follow(blobs, {.digest = digest}))));
  if (wanted.config == image.config &&
      std::ranges::equal(wanted.layers, image.layers, {}, &ImageReference::digest,
                         &ImageReference::digest))
    return ok();
  return corrupt("the image changed while it was read: its digest is not " + digest);
}

Error explained(Error error, const std::string& source) {
  if (error.detail.as<ImageFault>()) return std::move(error).in("the image " + source);
  const auto says = [&](std::initializer_list<const char*> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](const char* part) {
      return error.message.find(part) != std::string::npos;
    });
  };
  const auto is = [&](Kind kind, ImageFault fault) {
    error.kind = kind;
    error.detail = fault;
  };
  if (says({"no descriptor found", "does not resolve to an image", "identifier is not an image",
            "manifest unknown", "name unknown", "no image found"}) ||
      error.kind == Kind::not_found)
    is(Kind::not_found, ImageFault::missing);
  else if (says({"No space left", "no space left"}))
    error.kind = Kind::exhausted;
  else if (says({"unauthorized", "authentication required", "denied:", "403 (Forbidden)"}))
    is(Kind::denied, ImageFault::refused);
  else if (says({"connection refused", "no such host", "i/o timeout", "network is unreachable",
                 "no route to host", "server misbehaving", "name resolution", "proxyconnect",
                 "TLS handshake timeout", "connection reset", "deadline exceeded"}))
    is(Kind::unavailable, ImageFault::unreachable);
  return std::move(error).in("the image " + source);
}

}  // namespace trainyard::containers
