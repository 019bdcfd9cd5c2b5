"""One line that makes a job hear SIGTERM: ``container_entry_point=LAUNCHER``.

SageMaker's images start a script below programs that keep the signal to themselves. A ContainerEntrypoint in
exec form gets it. It fetches the job's source code, as an entrypoint has to do that itself, and then becomes
``launch.py`` out of it, which belongs into every source directory. With the SDK v3: ``trainer.use_launcher``.
"""

_PROGRAM = """\
import json, os, signal, sys, tarfile
signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
base = os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml')
def fail(why):
    print('error: ' + why, file=sys.stderr, flush=True)
    os.makedirs(base + '/output', exist_ok=True)
    with open(base + '/output/failure', 'w') as file:
        file.write(why[:1024])
    sys.exit(1)
def download(uri, region):
    import boto3
    bucket, _, key = uri[len('s3://'):].partition('/')
    boto3.client('s3', region_name=region).download_file(bucket, key, base + '/code.tar.gz')
    return base + '/code.tar.gz'
def unpack(archive):
    safely = {'filter': 'data'} if hasattr(tarfile, 'data_filter') else {}
    with tarfile.open(archive) as tar:
        tar.extractall(base + '/code', **safely)
    return base + '/code'
def archive_in(folder):
    found = os.listdir(folder)
    packed = [one for one in found if one.endswith('.tar.gz')]
    return folder + '/' + packed[0] if len(packed) == 1 and 'launch.py' not in found else None
def fetch(hyperparameters):
    text = lambda name, default: hyperparameters.get('sagemaker_' + name, default).strip('"')
    source = text('submit_directory', base + '/input/data/code')
    if source.startswith('s3://'):
        return unpack(download(source, text('region', '') or None))
    if os.path.isdir(source):
        return unpack(archive_in(source)) if archive_in(source) else source
    return unpack(source)
try:
    with open(base + '/input/config/hyperparameters.json') as file:
        source = fetch(json.load(file))
except Exception as error:
    fail('the source code cannot be fetched: ' + type(error).__name__ + ': ' + str(error))
if not os.path.isfile(source + '/launch.py'):
    fail('launch.py is not in the source directory: trainmaster training-code DIR --launcher-only copies it')
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
os.execv(sys.executable, [sys.executable, source + '/launch.py'] + sys.argv[LINES + 1:])
"""
_LINES = _PROGRAM.splitlines()

LAUNCHER: list[str] = [
    "python3",
    "-c",
    # What comes after the program, ContainerArguments, is the script's.
    f"import sys; LINES = {len(_LINES)}; exec('\\n'.join(sys.argv[1:LINES + 1]))",
    *_LINES,
]
"""Value of ``container_entry_point=`` of an SDK v2 estimator, or of a request's ContainerEntrypoint."""
