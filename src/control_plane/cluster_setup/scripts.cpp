#include "cluster_setup/scripts.hpp"

#include "base/text.hpp"
#include "cluster_setup/names.hpp"

namespace trainyard::cluster_setup {
namespace {

// A line that no base64 has.
constexpr const char* kEndOfContent = "-end-of-content-";

// The whole script is a function, which the shell has read to its end before it runs: a connection
// that breaks meanwhile leaves nothing half done, and no program in it reads the script's rest.
std::string in_function(std::string_view body) {
  return std::string(
             "set -eu\numask 077\nexport LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"
             "d=") +
         kDirectory + "\nmain() {\n" + std::string(body) + "}\nmain </dev/null\n";
}

// digest FILE: prints its SHA-256.
constexpr const char* kDigest = R"sh(digest() { sha256sum <"$1" | cut -c1-64; }
)sh";

// services: starts and stops by systemd, or by the scripts of /etc/init.d.
constexpr const char* kServices = R"sh(has_systemd() { [ -d /run/systemd/system ]; }
pid_file() { case $1 in munge) echo /run/munge/munged.pid ;; *) echo "/run/$1.pid" ;; esac; }
state_of() {
  if has_systemd; then
    if systemctl cat "$1.service" >/dev/null 2>&1; then
      if systemctl is-active --quiet "$1"; then echo running; else echo stopped; fi
    fi
  elif [ -x "/etc/init.d/$1" ]; then
    if kill -0 "$(cat "$(pid_file "$1")" 2>/dev/null)" 2>/dev/null
    then echo running; else echo stopped; fi
  fi
}
stop_service() {
  if has_systemd; then systemctl stop "$1"; return; fi
  # Not by its script: that of slurmctld takes itself for the daemon, and waits ten seconds.
  daemon=$(cat "$(pid_file "$1")" 2>/dev/null || true)
  tries=100
  while [ -n "$daemon" ] && kill "$daemon" 2>/dev/null && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.2
  done
}
start_service() { if has_systemd; then systemctl start "$1"; else service "$1" start; fi; }
)sh";

// put PATH MODE OWNER SERVICE..: replaces a file by standard input.
constexpr const char* kPut = R"sh(put() {
  path=$1 mode=$2 owner=$3
  shift 3
  folder=${path%/*} missing=
  while [ ! -d "$folder" ]; do missing="$folder $missing" folder=${folder%/*}; done
  for folder in $missing; do echo "$folder" >>"$d/made"; mkdir -m 0755 "$folder"; done
  cat >"$path.trainyard-new"
  touch "$d/files"
  saved=$(awk -v path="$path" '$3 == path { print $2 }' "$d/files")
  if [ -z "$saved" ]; then
    saved=-
    if [ -e "$path" ]; then
      mkdir -p "$d/before${path%/*}"
      cp -a "$path" "$d/before$path.new"
      mv -f "$d/before$path.new" "$d/before$path"
      saved=$(digest "$path")
    fi
  fi
  chown "$owner" "$path.trainyard-new"
  chmod "$mode" "$path.trainyard-new"
  awk -v path="$path" '$3 != path' "$d/files" >"$d/files.new"
  echo "$(digest "$path.trainyard-new") $saved $path" >>"$d/files.new"
  mv -f "$d/files.new" "$d/files"
  for service in "$@"; do touch "$d/pending-$service"; done
  mv -f "$path.trainyard-new" "$path"
}
)sh";

std::string put_command(const FileToWrite& file) {
  std::string text = "put " + shell_word(file.path) + " " + file.mode + " " + file.owner;
  for (const std::string& service : file.services) text += " " + service;
  return text;
}

std::string words_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

const std::vector<std::string>& all_paths() {
  static const std::vector<std::string> kPaths = [] {
    std::vector<std::string> paths{kSlurmConf, kCgroupConf, kGresConf, kMungeKey};
    for (const std::string& name : node_programs())
      paths.push_back(std::string(kProgramDirectory) + "/" + name);
    return paths;
  }();
  return kPaths;
}

constexpr const char* kHardware = R"sh(echo "hostname $(hostname | cut -d. -f1)"
value_of() { sed -n "s/^$1=//p" /etc/os-release | tr -d '"' | head -n 1; }
echo "system $(value_of ID) $(value_of VERSION_ID)"
if has_systemd; then echo systemd; fi
echo "cpus $(getconf _NPROCESSORS_ONLN)"
echo "memory_kib $(sed -n 's/^MemTotal: *\([0-9]*\) kB$/\1/p' /proc/meminfo)"
echo "seconds $(date +%s)"
for file in /proc/driver/nvidia/gpus/*/information; do
  [ -r "$file" ] || continue
  minor=$(sed -n 's/^Device Minor:[[:space:]]*\([0-9]*\).*/\1/p' "$file" | head -n 1)
  model=$(sed -n 's/^Model:[[:space:]]*//p' "$file" | head -n 1)
  if [ -n "$minor" ]; then echo "gpu $minor $model"; fi
done
for file in /dev/nvidia[0-9] /dev/nvidia[0-9][0-9]; do
  if [ -e "$file" ]; then echo "gpu_file ${file#/dev/nvidia}"; fi
done
)sh";

// 192.0.2.1 is an address of documents: only the route to it is looked up.
constexpr const char* kAddresses = R"sh(
ip -4 -o route get 192.0.2.1 2>/dev/null | sed -n 's/.* src \([0-9.]*\).*/address \1/p'
ip -4 -o address show scope global | sed -n 's/.* inet \([0-9.]*\)\/.*/address \1/p'
if [ -n "${SSH_CONNECTION:-}" ]; then
  echo "$SSH_CONNECTION" | awk '{ print "reached", $3, $1 }'
fi
)sh";

}  // namespace

const std::vector<std::string>& node_programs() {
  static const std::vector<std::string> kNames{"trainyard-agent", "trainyard-entry",
                                               "trainyard-slurm-host", "trainyard-trainer"};
  return kNames;
}

const std::vector<std::string>& all_services() {
  static const std::vector<std::string> kNames{"munge", "slurmctld", "slurmd"};
  return kNames;
}

const std::vector<std::string>& node_packages() {
  static const std::vector<std::string> kNames{"munge", "slurmd",   "slurm-client",
                                               "crun",  "nftables", "iproute2"};
  return kNames;
}

std::string inspection_script() {
  std::vector<std::string> packages = node_packages();
  packages.emplace_back(kControllerPackage);
  std::string body = std::string(kServices) + kDigest + "echo " + shell_word(kInspectionBegin) +
                     "\n" + kHardware + kAddresses;
  body += "dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\\n' " + words_of(packages) +
          " 2>/dev/null |\n  sed -n 's/^installed /package /p'\n";
  body += "for file in " + words_of(all_paths()) +
          R"sh(; do
  if [ -e "$file" ]; then echo "file $(digest "$file") $file"; fi
done
if [ -r "$d/files" ]; then sed 's/^/written /' "$d/files"; fi
for service in )sh" +
          words_of(all_services()) + R"sh(; do
  state=$(state_of "$service")
  if [ -n "$state" ]; then echo "service $service $state"; fi
  if [ -e "$d/pending-$service" ]; then echo "pending $service"; fi
done
if [ -r "$d/member" ]; then echo "member $(head -n 1 "$d/member")"; fi
if [ -r "$d/cluster.json" ]; then echo "record $(base64 -w 0 <"$d/cluster.json")"; fi
echo )sh" +
          std::string(kInspectionEnd) + "\n";
  return in_function(body);
}

std::string prepare_script(std::string_view cluster) {
  return in_function("cluster=" + shell_word(cluster) + "\n" + kServices + R"sh(mkdir -p "$d"
chmod 0711 "$d"
echo "$cluster" >"$d/member.new"
mv -f "$d/member.new" "$d/member"
[ ! -e "$d/services" ] || return 0
for log in /var/log/slurm/slurmctld.log /var/log/slurm/slurmd.log; do
  [ -e "$log" ] || echo "$log"
done >"$d/made"
for service in munge slurmctld slurmd; do
  enabled=
  if has_systemd; then enabled=$(systemctl is-enabled "$service" 2>/dev/null || true); fi
  echo "$service $(state_of "$service" | grep . || echo absent) ${enabled:-unknown}"
done >"$d/services.new"
mv -f "$d/services.new" "$d/services"
)sh");
}

std::string install_script(const std::vector<std::string>& packages) {
  return in_function(
      "export DEBIAN_FRONTEND=noninteractive\n"
      "apt-get update -q\n"
      "apt-get install -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends " +
      words_of(packages) + "\n");
}

std::string write_script(const FileToWrite& file) {
  std::string text = std::string(kDigest) + kPut + "base64 -d <<'" + kEndOfContent + "' | " +
                     put_command(file) + "\n";
  // A line of the here-document has a length that every shell reads.
  constexpr size_t kLineBytes = 4096;
  const std::string encoded = to_base64(file.content);
  for (size_t at = 0; at < encoded.size(); at += kLineBytes)
    text += encoded.substr(at, kLineBytes) + "\n";
  return in_function(text + kEndOfContent + "\n");
}

std::string make_key_script(const std::vector<std::string>& services) {
  const FileToWrite key{kMungeKey, "", "munge:munge", "0400", services};
  return in_function(std::string(kDigest) + kPut + "head -c 1024 /dev/urandom | " +
                     put_command(key) + "\n");
}

std::string read_key_script() {
  return in_function(std::string("base64 -w 0 <") + kMungeKey + "\n");
}

std::string record_script(std::string_view record) {
  return in_function("base64 -d >\"$d/cluster.json.new\" <<'" + std::string(kEndOfContent) + "'\n" +
                     to_base64(record) + "\n" + kEndOfContent +
                     "\nmv -f \"$d/cluster.json.new\" \"$d/cluster.json\"\n");
}

std::string restart_script(std::string_view service) {
  return in_function("service=" + shell_word(service) + "\n" + kServices + R"sh(
case $service in
  slurmctld) mkdir -p "$d/slurmctld"; chown slurm:slurm "$d/slurmctld" ;;
  slurmd) mkdir -p "$d/slurmd"; chmod 0755 "$d/slurmd" ;;
esac
if has_systemd; then systemctl enable --quiet "$service"; fi
stop_service "$service"
start_service "$service" >&2
answers() {
  case $service in
    munge) munge -n 2>/dev/null | unmunge >/dev/null 2>&1 ;;
    slurmctld) scontrol ping 2>/dev/null | grep -q 'is UP' ;;
    slurmd) [ "$(state_of slurmd)" = running ] ;;
  esac
}
fail() {
  tail -n 5 "/var/log/slurm/$service.log" 2>/dev/null >&2 || true
  echo "$service $1" >&2
  exit 1
}
tries=30
until answers; do
  tries=$((tries - 1))
  if [ "$tries" = 0 ]; then fail 'does not answer after 30 s'; fi
  sleep 1
done
# A daemon that dislikes its configuration ends soon.
sleep 1
answers || fail 'ended right after its start'
rm -f "$d/pending-$service"
)sh");
}

std::string await_node_script(std::string_view node) {
  return in_function("node=" + shell_word(node) + R"sh(
tries=60
while :; do
  state=$(sinfo -h -n "$node" -o %T 2>/dev/null | head -n 1)
  case $state in
    *inval* | *down* | *fail*) ;;
    '' | *unk* | *'*'*) ;;
    *) return 0 ;;
  esac
  tries=$((tries - 1))
  if [ "$tries" = 0 ]; then
    echo "Slurm says after 60 s that it is '$state': $(sinfo -h -n "$node" -o %E | head -n 1)" >&2
    exit 1
  fi
  sleep 1
done
)sh");
}

std::string drain_script(std::string_view node, bool force) {
  return in_function("node=" + shell_word(node) + " force=" + (force ? "yes" : "no") + R"sh(
if ! scontrol ping 2>/dev/null | grep -q 'is UP'; then
  [ "$force" = no ] || return 0
  echo 'slurmctld does not answer, so its jobs are unknown; start it, or use --force' >&2
  exit 1
fi
scontrol show node "$node" >/dev/null 2>&1 || return 0
before=$(sinfo -h -n "$node" -o %T | head -n 1)
scontrol update nodename="$node" state=drain reason='trainyard cluster remove'
jobs() { squeue -h -w "$node" -o %A | sort -un | head -n 10 | tr '\n' ' '; }
if [ "$force" = no ] && [ -n "$(jobs)" ]; then
  running=$(jobs)
  case $before in *drain*) ;; *) scontrol update nodename="$node" state=resume ;; esac
  echo "jobs use $node: ${running% }; wait for their end, or cancel them by --force" >&2
  exit 1
fi
tries=60
while [ -n "$(jobs)" ]; do
  scancel -w "$node" --full 2>/dev/null || true
  tries=$((tries - 1))
  if [ "$tries" = 0 ]; then
    echo "jobs still use $node 60 s after they were cancelled: $(jobs)" >&2
    exit 1
  fi
  sleep 1
done
)sh");
}

std::string undo_script() {
  return in_function(std::string(kDigest) + kServices + R"sh([ -d "$d" ] || return 0
for service in slurmctld slurmd munge; do
  if [ "$(state_of "$service")" = running ]; then stop_service "$service"; fi
done
touch "$d/files" "$d/made" "$d/services"
while read -r written saved path; do
  now=-
  if [ -e "$path" ]; then now=$(digest "$path"); fi
  if [ "$now" = "$saved" ]; then continue; fi
  if [ "$now" != "$written" ] && [ "$now" != - ]; then echo "kept $path"; continue; fi
  if [ "$saved" = - ]; then rm -f "$path"; else cp -a "$d/before$path" "$path"; fi
done <"$d/files"
while read -r service state enabled; do
  if [ "$state" = running ]; then start_service "$service" >&2; fi
  case $enabled in
    disabled | unknown | not-found) if has_systemd; then systemctl disable --quiet "$service" || true; fi ;;
  esac
done <"$d/services"
sort -r "$d/made" | while read -r path; do
  if [ -d "$path" ]; then rmdir "$path" 2>/dev/null || true; else rm -f "$path"; fi
done
rm -rf "$d"
)sh");
}

std::string status_script() {
  return in_function("sinfo -h -a -N -o '%N|%T|%c|%m|%G|%v|%E' | sort -u\n");
}

}  // namespace trainyard::cluster_setup
