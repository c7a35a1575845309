#!/usr/bin/env bats
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2164
# Whole programs with a small job, as in programs.bats, of packages that are large.
load lib

setup_file() {
	require_shim || return
	pattern 3000000 >"$BATS_FILE_TMPDIR/in"
}

@test "node" {
	need node
	job node script <<'EOF'
const fs = require('fs'), crypto = require('crypto'), { pipeline } = require('stream/promises'), { execFileSync } = require('child_process');
const hash = (p) => crypto.createHash('sha256').update(fs.readFileSync(p)).digest('hex').slice(0, 16);
(async () => {
	const d = fs.readFileSync('in');
	console.log(d.length, hash('in'));
	await pipeline(fs.createReadStream('in'), fs.createWriteStream('a'));
	await pipeline(fs.createReadStream('in', { start: 1001, end: 2000000, highWaterMark: 5000 }), fs.createWriteStream('b'));
	fs.copyFileSync('in', 'c');
	await fs.promises.writeFile('d', d.subarray(0, 1234567));
	console.log(hash('a'), hash('b'), hash('c'), hash('d'), fs.statSync('b').size);
	const f = fs.openSync('e', 'w+'), got = Buffer.alloc(5000);
	for (let n = 0; n < d.length; n += 777) fs.writeSync(f, d, n, Math.min(777, d.length - n));
	console.log(fs.fstatSync(f).size, execFileSync('cksum', ['e']).toString().trim());
	fs.writeSync(f, 'at an offset', 100000);
	console.log(fs.readSync(f, got, 0, 5000, 99999), got.toString('latin1', 1, 13));
	fs.ftruncateSync(f, 2500001);
	fs.fsyncSync(f);
	fs.closeSync(f);
	console.log(hash('e'));
	for (let i = 0; i < 500; i++) fs.appendFileSync('log', 'line ' + i + '\n');
	const all = await Promise.all([...Array(20).keys()].map(async (i) => {
		const h = await fs.promises.open('in'), r = await h.read(Buffer.alloc(10000), 0, 10000, i * 100000);
		await h.close();
		return crypto.createHash('sha256').update(r.buffer.subarray(0, r.bytesRead)).digest('hex').slice(0, 4);
	}));
	console.log(all.join(' '), fs.statSync('log').size);
	fs.renameSync('a', 'g');
	console.log(fs.readdirSync('.').join(' '));
})();
EOF
}

@test "java" {
	need java
	local dir=$BATS_TEST_TMPDIR/classes
	java --list-modules | grep -q '^jdk.compiler' || skip "needs a JDK"
	mkdir "$dir"
	cat >"$dir/Job.java" <<'EOF'
import java.io.*;
import java.nio.*;
import java.nio.channels.FileChannel;
import java.nio.file.*;
import java.util.zip.*;
class Job {
	static String sum(String p) throws IOException {
		CRC32 c = new CRC32();
		c.update(Files.readAllBytes(Path.of(p)));
		return p + " " + c.getValue() + " " + Files.size(Path.of(p));
	}
	public static void main(String[] a) throws Exception {
		byte[] d = Files.readAllBytes(Path.of("in"));
		Files.copy(Path.of("in"), Path.of("a"));
		try (InputStream in = new FileInputStream("in"); OutputStream out = new FileOutputStream("b")) { in.transferTo(out); }
		try (InputStream in = new BufferedInputStream(new FileInputStream("in")); OutputStream out = new BufferedOutputStream(new FileOutputStream("c"))) {
			for (int x; (x = in.read()) >= 0;) out.write(x);
		}
		System.out.println(sum("a") + " " + sum("b") + " " + sum("c"));
		try (RandomAccessFile f = new RandomAccessFile("d", "rw")) {
			for (int n = 0; n < d.length; n += 777) f.write(d, n, Math.min(777, d.length - n));
			f.seek(100000);
			f.writeBytes("in the middle");
			f.seek(99998);
			byte[] got = new byte[20];
			f.readFully(got);
			System.out.println(new String(got, 2, 13) + " " + f.length() + " " + f.getFilePointer());
			f.setLength(2500001);
			MappedByteBuffer m = f.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 4096);
			m.put(7, (byte)'!');
			m.force();
			f.seek(7);
			System.out.println(f.read());
		}
		try (FileChannel in = FileChannel.open(Path.of("in")); FileChannel out = FileChannel.open(Path.of("e"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
			System.out.println(in.transferTo(1001, 2000000, out) + " " + in.position() + " " + out.position() + " " + out.size());
			out.position(out.size());
			System.out.println(out.write(new ByteBuffer[] { ByteBuffer.wrap(d, 0, 1000), ByteBuffer.wrap(d, 5000, 100000) }) + " " + out.position());
			ByteBuffer b = ByteBuffer.allocateDirect(65536);
			for (long n = 0; in.read(b, n) > 0; n += 65536) {
				b.flip();
				out.write(b);
				b.clear();
			}
			out.force(true);
		}
		System.out.println(sum("d") + " " + sum("e"));
		Process p = new ProcessBuilder("cat", "d").redirectOutput(new File("f")).start();
		System.out.println(p.waitFor() + " " + sum("f"));
	}
}
EOF
	javac -d "$dir" "$dir/Job.java"
	job java -Xshare:off -cp "$dir" Job </dev/null
}

@test "dpkg and apt, with a root of their own" {
	need_root
	need dpkg-deb apt-ftparchive apt-get
	job bash script <<'EOF'
export SOURCE_DATE_EPOCH=1000000000; top=$PWD; mkdir -p p/DEBIAN p/usr/share/thing root/var/lib/dpkg/{info,updates,triggers} repo apt/{state/lists/partial,cache/archives/partial}
: >root/var/lib/dpkg/status; cp in p/usr/share/thing/data
printf 'Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: nobody <a@b>\nDescription: a thing\n' >p/DEBIAN/control
touch -d @1000000000 p/usr/share/thing/data p/usr/share/thing p/usr/share p/usr p/DEBIAN/control p/DEBIAN p
dpkg-deb --root-owner-group -b p repo/thing.deb >/dev/null; cksum repo/thing.deb
dpkg --root="$top/root" --force-script-chrootless -i repo/thing.deb 2>&1 | grep -c "Setting up"; cmp in root/usr/share/thing/data && echo same
dpkg --root="$top/root" -l thing | tail -n 1
(cd repo && apt-ftparchive packages . >Packages 2>/dev/null); grep -c "^Filename" repo/Packages
echo "deb [trusted=yes] file:$top/repo ./" >apt/list
apt-get -o Dir::State="$top/apt/state" -o Dir::Cache="$top/apt/cache" -o Dir::Etc::SourceList="$top/apt/list" -o Dir::Etc::SourceParts=/none -o APT::Sandbox::User=root -o Dir::State::Status="$top/root/var/lib/dpkg/status" update >/dev/null 2>&1; echo "update $?"
apt-get -o Dir::State="$top/apt/state" -o Dir::Cache="$top/apt/cache" -o Dir::Etc::SourceList="$top/apt/list" -o Dir::Etc::SourceParts=/none -o APT::Sandbox::User=root -o Dir::State::Status="$top/root/var/lib/dpkg/status" --print-uris -y --reinstall install thing 2>/dev/null | grep -c thing
dpkg --root="$top/root" --force-script-chrootless -r thing 2>&1 | grep -c Removing; ls root/usr/share/thing 2>&1 | head -n 1; rm -rf apt root repo p
EOF
}
