/* The launcher: runs one program, watches what it uses, and is the only one who reports what became of it.
 *
 * In the sandbox it is process 1 of the job's pid namespace, so no signal of the program reaches it and its end is the
 * end of everything that the job started; without a sandbox it is the job's subreaper. It is not dumpable, so a program
 * of the same user cannot open its descriptors or its memory. The report goes to a pipe that the program never holds.
 *
 * Memory is watched, not reserved: address space says nothing about use (threads, arenas and CUDA reserve far more than
 * they touch). What counts is resident memory, shared pages divided among their owners, plus what lies in the job's own
 * tmpfs folders, in unlinked files held open, in System V segments and in the buffers of pipes and sockets. Disk is what lies in files of the writable folders changed since the
 * start, looked at more often when the file system's free space falls; a pass over the folders costs at most one part
 * in ten of one core when it is urgent and one in a hundred otherwise.
 *
 * A container engine passes no descriptors on. There `-s` names a socket in a folder that the engine shows, from which the
 * launcher gets them all (stdout, stderr, report, control, and the list of refused system calls) before anything else runs;
 * the other side listens once.
 *
 * launch -r FD -k FD | -s SOCKET [-w ms] [-m bytes] [-p tasks] [-q | -Q] [-f bytes] [-d bytes] [-t tmpfs]... [-o folder]... [-c cpus]
 *        [-e NAME=VALUE]... [-C folder] -- PROGRAM ARGUMENT...
 * Report: `start`, then `end CODE SIGNAL WALL_NS CPU_US MAX_RSS_KB LIMIT` or `fault WORDS`, one line each.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 20, OPEN_FILES = 4096, MANY = 64, KILL_S = 5, FILE_COST = 4096 };
enum { INODE_COST = 1024, PIPE_COST = 64 << 10, SOCKET_COST = 208 << 10 }; /* the kernel's defaults */
static const int64_t SECOND = 1000000000, FULL_DISK_BYTES = 8 << 20;
enum { ALL_JOBS_TASKS = 8192 }; /* more than all jobs of a machine have together, far fewer than it has numbers for */
enum { FULL_DISK_FILES = 64 }; /* names that a file system may have left, where it has a number of them */

static struct {
    int report, control;
    int64_t wall_ns, memory, tasks, file, disk;
    bool limit_tasks; /* the kernel counts this user's tasks for this job alone */
    bool bound_tasks; /* it counts those of all jobs together: a bound on what a job can do between two looks */
    char *tmpfs[MANY], *folders[MANY], *cwd;
    int tmpfs_count, folder_count;
    cpu_set_t cpus;
    char **program;
} job = {.report = -1, .control = -1};

static pid_t child;
static int child_status, wake[2];
static volatile int64_t child_end_ns;

static int64_t now_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

static void die(const char *what) {
    dprintf(job.report >= 0 ? job.report : 2, "fault launcher: %s: %s\n", what, strerror(errno));
    _exit(125);
}

/* ---- the job's processes ---- */

struct task {
    pid_t pid, parent;
    long threads;
    int64_t rss;
    bool ours;
};
static struct task *tasks;
static size_t task_count, task_room;
static int64_t scan_cost_ns; /* processor time, so that waiting for a core does not count */

static bool read_task(const char *name, struct task *task) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    if (length <= 0) return false;
    text[length] = 0;
    char *after = strrchr(text, ')'); /* the name may hold anything */
    long pages;
    int parent;
    if (!after || sscanf(after + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %*u %*u %ld",
                         &parent, &task->threads, &pages) != 3)
        return false;
    task->pid = atoi(name);
    task->parent = parent;
    task->rss = (int64_t)pages * sysconf(_SC_PAGESIZE);
    task->ours = task->parent == getpid();
    return true;
}

/* Every descendant of the launcher is marked `ours`; orphans come back to it, so none is missed. */
static void scan_tasks(void) {
    int64_t start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    task_count = 0;
    DIR *proc = opendir("/proc");
    if (!proc) die("/proc");
    for (struct dirent *entry; (entry = readdir(proc));) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        if (task_count == task_room) {
            task_room = task_room ? 2 * task_room : 256;
            tasks = realloc(tasks, task_room * sizeof *tasks);
            if (!tasks) die("memory");
        }
        if (read_task(entry->d_name, &tasks[task_count])) task_count++;
    }
    closedir(proc);
    for (bool grew = true; grew;) {
        grew = false;
        for (size_t i = 0; i < task_count; i++)
            for (size_t j = 0; j < task_count && !tasks[i].ours; j++)
                if (tasks[j].ours && tasks[j].pid == tasks[i].parent) grew = tasks[i].ours = true;
    }
    scan_cost_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
}

/* ---- memory ---- */

static bool hidden; /* something of the job could not be looked at */
static int64_t free_at_start;

/* Adds a task's anonymous memory and its shared memory, shared pages divided among their owners; its resident size where
 * that cannot be read. */
static void proportional(const struct task *task, int64_t *anonymous, int64_t *shared) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", task->pid);
    FILE *file = fopen(path, "re");
    long kb;
    bool found = false;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss_Anon: %ld", &kb) == 1) *anonymous += kb * 1024L, found = true;
        else if (sscanf(line, "Pss_Shmem: %ld", &kb) == 1) *shared += kb * 1024L;
    if (file) fclose(file);
    if (!found) *anonymous += task->rss;
}

/* System V segments live on when nobody has them attached. In the sandbox all that there are are the job's own. */
static int64_t segment_bytes(void) {
    FILE *file = getpid() == 1 ? fopen("/proc/sysvipc/shm", "re") : NULL;
    char line[512];
    int64_t total = 0;
    long long rss;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "%*d %*d %*o %*u %*d %*d %*u %*u %*u %*u %*u %*u %*u %*u %lld", &rss) == 1) total += rss;
    if (file) fclose(file);
    return total;
}

struct inode {
    dev_t device;
    ino_t number;
    int64_t bytes;
};

static int by_inode(const void *a, const void *b) { return memcmp(a, b, offsetof(struct inode, bytes)); }

static bool on_disk(dev_t device) {
    struct stat status;
    for (int i = 0; i < job.folder_count; i++)
        if (stat(job.folders[i], &status) == 0 && status.st_dev == device) return true;
    return false;
}

/* Bytes in files without a name that the job holds open: on the writable folders' devices, or elsewhere (memory, where what
 * the buffers of pipes and sockets may hold counts as well). */
static int64_t held_bytes(bool disk) {
    int64_t total = 0;
    struct inode *found = NULL;
    size_t count = 0, room = 0;
    for (size_t i = 0; i < task_count; i++) {
        char path[64];
        if (!tasks[i].ours) continue;
        snprintf(path, sizeof path, "/proc/%d/fd", tasks[i].pid);
        DIR *folder = opendir(path);
        if (!folder) {
            hidden |= errno == EACCES;
            continue;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            struct stat status;
            if (fstatat(dirfd(folder), entry->d_name, &status, 0)) continue;
            if (!disk && S_ISSOCK(status.st_mode)) total += SOCKET_COST;
            if (!disk && S_ISFIFO(status.st_mode)) total += PIPE_COST;
            if (!S_ISREG(status.st_mode) || status.st_nlink) continue;
            if (count == room) {
                room = room ? 2 * room : 64;
                found = realloc(found, room * sizeof *found);
                if (!found) die("memory");
            }
            memset(&found[count], 0, sizeof *found);
            found[count++] = (struct inode){status.st_dev, status.st_ino, status.st_blocks * 512L};
        }
        closedir(folder);
    }
    if (count) qsort(found, count, sizeof *found, by_inode);
    for (size_t i = 0; i < count; i++)
        if ((i == 0 || by_inode(&found[i - 1], &found[i])) && on_disk(found[i].device) == disk) total += found[i].bytes;
    free(found);
    return total;
}

static int64_t tmpfs_bytes(void) {
    int64_t total = 0;
    struct statvfs fs;
    for (int i = 0; i < job.tmpfs_count; i++)
        if (statvfs(job.tmpfs[i], &fs) == 0)
            total += (int64_t)(fs.f_blocks - fs.f_bfree) * (int64_t)fs.f_frsize + (int64_t)(fs.f_files - fs.f_ffree) * INODE_COST;
    return total;
}

static int64_t free_memory(void) {
    struct sysinfo info;
    return sysinfo(&info) ? 0 : (int64_t)(info.freeram + info.bufferram) * info.mem_unit;
}

static bool memory_over(void) {
    static int64_t look_again;
    int64_t start = now_ns(CLOCK_PROCESS_CPUTIME_ID), free_now = free_memory(), used = tmpfs_bytes();
    int64_t cheap = used, shared = 0, segments;
    for (size_t i = 0; i < task_count; i++) cheap += tasks[i].ours ? tasks[i].rss : 0;
    if ((cheap <= job.memory && free_at_start - free_now <= job.memory) || now_ns(CLOCK_MONOTONIC) < look_again)
        return false;
    for (size_t i = 0; i < task_count; i++)
        if (tasks[i].ours) proportional(&tasks[i], &used, &shared);
    segments = segment_bytes(); /* those that are attached are shared memory of their owners, too */
    used += held_bytes(false) + (segments > shared ? segments : shared);
    look_again = now_ns(CLOCK_MONOTONIC) + 10 * (now_ns(CLOCK_PROCESS_CPUTIME_ID) - start);
    return used > job.memory;
}

/* ---- disk ---- */

static int64_t changed_bytes, started_at;
static const char *full_disk; /* a writable folder whose file system has no room left: the machine's fault */

static int visit(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)path, (void)walk;
    if (kind == FTW_DNR || kind == FTW_NS) hidden = true;
    else if (status->st_ctim.tv_sec * SECOND + status->st_ctim.tv_nsec >= started_at) {
        int64_t bytes = status->st_blocks * 512L, names = status->st_nlink > 1 && kind == FTW_F ? status->st_nlink : 1;
        changed_bytes += (bytes > FILE_COST ? bytes : FILE_COST) / names;
    }
    return 0;
}

/* Bytes by which the writable folders' file systems grew since the first call. */
static int64_t disk_growth(void) {
    static int64_t before[MANY];
    static bool measured;
    int64_t growth = 0;
    for (int i = 0; i < job.folder_count; i++) {
        struct statvfs fs;
        if (statvfs(job.folders[i], &fs)) continue;
        int64_t unit = (int64_t)fs.f_frsize, used = (int64_t)(fs.f_blocks - fs.f_bfree) * unit;
        if (fs.f_blocks && (int64_t)fs.f_bavail * unit < FULL_DISK_BYTES) full_disk = job.folders[i];
        if (fs.f_files && fs.f_favail < FULL_DISK_FILES) full_disk = job.folders[i];
        if (!measured) before[i] = used;
        if (used - before[i] > growth) growth = used - before[i];
    }
    measured = true;
    return growth;
}

static bool disk_over(bool last) {
    static int64_t scanned, cost;
    int64_t growth = disk_growth(), now = now_ns(CLOCK_MONOTONIC), start = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (!scanned) scanned = now;
    int64_t patience = growth > job.disk / 2 ? 10 * cost : 100 * cost < SECOND ? SECOND : 100 * cost;
    if (last ? growth <= job.disk : now - scanned < patience) return false;
    changed_bytes = 0;
    hidden = false;
    for (int i = 0; i < job.folder_count; i++) nftw(job.folders[i], visit, 32, FTW_PHYS | FTW_MOUNT);
    int64_t used = changed_bytes + (growth > job.disk ? held_bytes(true) : 0);
    scanned = now_ns(CLOCK_MONOTONIC);
    cost = now_ns(CLOCK_PROCESS_CPUTIME_ID) - start;
    return used > job.disk || (growth > job.disk && hidden);
}

/* ---- running ---- */

static const char *limit_passed(int64_t start_ns) {
    if (now_ns(CLOCK_MONOTONIC) - start_ns > job.wall_ns) return "time";
    scan_tasks();
    long threads = 0;
    for (size_t i = 0; i < task_count; i++) threads += tasks[i].ours ? tasks[i].threads : 0;
    if (threads > job.tasks) return "processes";
    if (memory_over()) return "memory";
    return disk_over(false) || full_disk ? "disk" : NULL;
}

/* Takes the program's end at the moment of the signal, so that a pass over folders in the main loop cannot delay it. */
static void on_child(int signal) {
    (void)signal;
    int saved = errno;
    siginfo_t info = {0};
    if (!child_end_ns && child > 0 && waitid(P_PID, child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child)
        child_end_ns = now_ns(CLOCK_MONOTONIC);
    (void)!write(wake[1], "", 1);
    errno = saved;
}

/* Collects the dead; true when the program is among them. */
static bool reap(void) {
    bool ended = false;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (pid == child) {
            ended = true;
            child_status = status;
            if (!child_end_ns) child_end_ns = now_ns(CLOCK_MONOTONIC);
        }
    return ended;
}

static void drain(void) {
    char bytes[64];
    while (read(wake[0], bytes, sizeof bytes) > 0) continue;
}

/* Kills whatever the job left and waits until it is gone, so that its files are quiet and its times are counted. */
static void end_everything(void) {
    int64_t deadline = now_ns(CLOCK_MONOTONIC) + KILL_S * SECOND;
    while (now_ns(CLOCK_MONOTONIC) < deadline) {
        reap();
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) return;
        if (getpid() == 1) kill(-1, SIGKILL);
        else {
            kill(-child, SIGKILL); /* its own process group at one stroke, then whatever left it */
            scan_tasks();
            for (size_t i = 0; i < task_count; i++)
                if (tasks[i].ours) kill(tasks[i].pid, SIGKILL);
        }
        struct pollfd fd = {.fd = wake[0], .events = POLLIN};
        poll(&fd, 1, 2);
        drain();
    }
}

static void set_limit(int resource, int64_t value) {
    struct rlimit limit = {(rlim_t)value, (rlim_t)value}, held;
    if (getrlimit(resource, &held) == 0 && held.rlim_max < limit.rlim_max) limit.rlim_cur = limit.rlim_max = held.rlim_max;
    setrlimit(resource, &limit);
}

static void become_program(int status_fd) {
    setsid();
    umask(022);
    set_limit(RLIMIT_CORE, 1); /* 0 would still start the machine's collector of core dumps, where it has one */
    set_limit(RLIMIT_RTPRIO, 0);
    set_limit(RLIMIT_NICE, 0);
    set_limit(RLIMIT_FSIZE, job.file);
    set_limit(RLIMIT_NOFILE, OPEN_FILES);
    /* A few more than allowed, so that a job at its limit is seen beyond it and named, not only refused a fork. */
    if (job.limit_tasks) set_limit(RLIMIT_NPROC, job.tasks + 16);
    else if (job.bound_tasks) set_limit(RLIMIT_NPROC, job.tasks + ALL_JOBS_TASKS);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); /* when memory runs out, the job goes first */
    if (fd >= 0) (void)!write(fd, "1000", 4);
    if (CPU_COUNT(&job.cpus) && sched_setaffinity(0, sizeof job.cpus, &job.cpus)) {
        dprintf(2, "cannot pin to the named cores: %s\n", strerror(errno));
        _exit(126);
    }
    if (job.cwd && chdir(job.cwd)) {
        dprintf(2, "%s: %s\n", job.cwd, strerror(errno));
        _exit(126);
    }
    if (syscall(SYS_close_range, 3, ~0U, 4 /* CLOSE_RANGE_CLOEXEC */))
        for (int i = 3; i < 1024; i++) fcntl(i, F_SETFD, FD_CLOEXEC);
    signal(SIGCHLD, SIG_DFL);
    int64_t start = now_ns(CLOCK_MONOTONIC);
    (void)!write(status_fd, &start, sizeof start);
    execvp(job.program[0], job.program);
    int reason = errno;
    dprintf(2, "%s: %s\n", job.program[0], strerror(reason));
    _exit(reason == ENOENT ? 127 : 126);
}

/* Starts the program; returns the time just before its exec. */
static int64_t start_program(void) {
    int status[2];
    int64_t start;
    if (pipe2(status, O_CLOEXEC)) die("pipe");
    child = fork();
    if (child < 0) die("fork");
    if (child == 0) become_program(status[1]);
    close(status[1]);
    ssize_t got;
    do got = read(status[0], &start, sizeof start);
    while (got < 0 && errno == EINTR);
    close(status[0]);
    return got == sizeof start ? start : now_ns(CLOCK_MONOTONIC);
}

/* 20 ms between two looks in the sandbox, where only the job's processes are seen; longer among all of a machine's, so
 * that looking takes at most a fiftieth of one core. */
static int64_t pause_ns(void) {
    int64_t least = POLL_MS * 1000000L, most = 10 * least, fair = 50 * scan_cost_ns;
    return fair < least ? least : fair > most ? most : fair;
}

/* Waits for the program's end, a limit, or a word of the parent; returns the limit's name or NULL. */
static const char *watch(int64_t start_ns) {
    struct pollfd fds[2] = {{.fd = wake[0], .events = POLLIN}, {.fd = job.control, .events = POLLIN}};
    for (int64_t next = start_ns + POLL_MS * 1000000L;;) {
        int64_t left = next - now_ns(CLOCK_MONOTONIC), wall = start_ns + job.wall_ns - now_ns(CLOCK_MONOTONIC);
        if (wall < left) left = wall;
        poll(fds, 2, left > 0 ? (int)(left / 1000000L) + 1 : 0);
        drain();
        if (reap()) return disk_over(true) ? "disk" : NULL;
        if (fds[1].revents) return "output";
        int64_t now = now_ns(CLOCK_MONOTONIC);
        if (now < next && now < start_ns + job.wall_ns) continue;
        const char *limit = limit_passed(start_ns);
        if (limit) return limit;
        next = now_ns(CLOCK_MONOTONIC) + pause_ns();
    }
}

static void report(const char *limit, int64_t start_ns) {
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    if (!child_end_ns) child_end_ns = now_ns(CLOCK_MONOTONIC);
    int code = WIFEXITED(child_status) ? WEXITSTATUS(child_status) : -1;
    int signal = WIFSIGNALED(child_status) ? WTERMSIG(child_status) : code < 0 ? SIGKILL : 0;
    if (!limit && signal == SIGXFSZ) limit = "disk";
    int64_t cpu_us = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000L + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    dprintf(job.report, "end %d %d %lld %lld %ld %s\n", code, signal, (long long)(child_end_ns - start_ns),
            (long long)cpu_us, used.ru_maxrss, limit ? limit : "none");
}

static void refuse_calls(int list) {
    static struct sock_filter steps[1024];
    ssize_t length = pread(list, steps, sizeof steps, 0);
    struct sock_fprog program = {(unsigned short)((size_t)(length > 0 ? length : 0) / sizeof *steps), steps};
    if (length <= 0) die("the list of refused system calls");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) die("seccomp");
    close(list);
}

/* All that another process would have been started with, from the one that listens at `path`. */
static void receive_channels(const char *path) {
    enum { OUT, ERR, REPORT, CONTROL, REFUSED, COUNT };
    int fds[COUNT], talk = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%s", path);
    if (talk < 0 || connect(talk, (struct sockaddr *)&name, sizeof name)) die(path);
    char byte, space[CMSG_SPACE(sizeof fds)] __attribute__((aligned(8)));
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t got = recvmsg(talk, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    size_t length = header ? header->cmsg_len - CMSG_LEN(0) : 0;
    if (length < REFUSED * sizeof *fds || length > sizeof fds) errno = got < 0 ? errno : EPIPE, die("the job's channels");
    memcpy(fds, CMSG_DATA(header), length);
    close(talk);
    if (dup2(fds[OUT], 1) < 0 || dup2(fds[ERR], 2) < 0) die("dup2");
    close(fds[OUT]), close(fds[ERR]);
    job.report = fds[REPORT], job.control = fds[CONTROL];
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) die("no_new_privs");
    if (length == sizeof fds) refuse_calls(fds[REFUSED]);
}

static void read_cpus(char *list) {
    for (char *word = strtok(list, ","); word; word = strtok(NULL, ",")) CPU_SET(atoi(word), &job.cpus);
}

static void add(char **list, int *count, char *value) {
    if (*count == MANY) errno = E2BIG, die(value);
    list[(*count)++] = value;
}

static void read_options(int argc, char **argv) {
    const char *socket_path = NULL;
    clearenv();
    for (int option; (option = getopt(argc, argv, "+r:k:s:w:m:p:qQf:d:t:o:c:e:C:")) != -1;) switch (option) {
        case 'r': job.report = atoi(optarg); break;
        case 'k': job.control = atoi(optarg); break;
        case 's': socket_path = optarg; break;
        case 'w': job.wall_ns = atoll(optarg) * 1000000L; break;
        case 'm': job.memory = atoll(optarg); break;
        case 'p': job.tasks = atoll(optarg); break;
        case 'q': job.limit_tasks = true; break;
        case 'Q': job.bound_tasks = true; break;
        case 'f': job.file = atoll(optarg); break;
        case 'd': job.disk = atoll(optarg); break;
        case 't': add(job.tmpfs, &job.tmpfs_count, optarg); break;
        case 'o': add(job.folders, &job.folder_count, optarg); break;
        case 'c': read_cpus(optarg); break;
        case 'e': putenv(optarg); break;
        case 'C': job.cwd = optarg; break;
        default: errno = EINVAL, die("options");
        }
    job.program = argv + optind;
    if (socket_path) receive_channels(socket_path);
    if (job.report < 0 || job.control < 0 || !job.program[0]) errno = EINVAL, die("options");
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    if (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_CHILD_SUBREAPER, 1)) die("prctl");
    if (pipe2(wake, O_CLOEXEC | O_NONBLOCK)) die("pipe");
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    sigaction(SIGCHLD, &action, NULL);
    started_at = now_ns(CLOCK_REALTIME_COARSE); /* the clock of a file's change time */
    free_at_start = free_memory();
    disk_growth();
    dprintf(job.report, "start\n");
    int64_t start_ns = start_program();
    const char *limit = watch(start_ns);
    end_everything();
    if (full_disk) dprintf(job.report, "fault the disk that holds %s is full\n", full_disk);
    else report(limit, start_ns);
    return 0;
}
