#!/bin/sh
# nginx.sh: `nginx -t` (or `lighttpd -tt`) on every file of nginx-conf/, each in the smallest surroundings it is made for. A warning is a
# failure. Nothing outside a temporary folder is read or written, and it needs no root: low ports are mapped to high ones.
set -u

cd "$(dirname "$0")/../.." || exit 1
PATH=$PATH:/usr/sbin:/sbin
command -v nginx >/dev/null || { echo "nginx.sh: nginx is not installed" >&2; exit 1; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/conf" "$dir/conf/conf.d" "$dir/conf/snippets"
failed=0

cp nginx-conf/hanji-upstream.conf "$dir/conf/conf.d/"
cp nginx-conf/hanji-params.conf nginx-conf/hanji-locations.conf nginx-conf/hanji-auth.conf "$dir/conf/snippets/"
auth_http() { sed "s|/run/hanji-auth-cache|$dir/cache|" nginx-conf/hanji-auth-http.conf; }
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -keyout "$dir/key.pem" -out "$dir/cert.pem" 2>/dev/null || { echo "nginx.sh: openssl failed" >&2; exit 1; }

# The example as this nginx and this machine can read it.
site() {
    sed -e "s|/etc/ssl/certs/ssl-cert-snakeoil.pem|$dir/cert.pem|" \
        -e "s|/etc/ssl/private/ssl-cert-snakeoil.key|$dir/key.pem|" \
        -e 's/\(listen .*\)\b80;/\110080;/' -e 's/\(listen .*\)\b443 /\110443 /' nginx-conf/example-site.conf |
        if [ -s /proc/net/if_inet6 ]; then cat; else grep -v 'listen \[::\]'; fi |
        if sh deploy/nginx-version.sh 1.25.1; then
            sed 's/\(listen 10443 ssl\) http2;/\1; http2 on;/; s/ ssl http2;/ ssl;/'
        else cat; fi
}

try() { # try NAME: the http {} part on stdin
    {
        echo "pid $dir/pid; error_log stderr; events {} http { access_log off;"
        for temp in client_body proxy fastcgi uwsgi scgi; do echo "${temp}_temp_path $dir/temp;"; done
        cat
        echo '}'
    } >"$dir/conf/nginx.conf"
    said=$(nginx -t -e stderr -p "$dir" -c "$dir/conf/nginx.conf" 2>&1)
    rc=$?
    if [ $rc != 0 ] || printf '%s' "$said" | grep -q '\[\(warn\|error\|crit\|alert\|emerg\)\]'; then
        printf '%s:\n%s\n' "$1" "$said" >&2
        failed=1
    fi
}

listen="server { listen unix:$dir/http.sock;"
for file in nginx-conf/*.conf; do
    case ${file##*/} in
    hanji-upstream.conf) try "$file" <<END ;;
        include conf.d/*.conf;
        $listen location / { fastcgi_pass hanji; } }
END
    hanji-auth-http.conf) try "$file" <<END ;;
        $(auth_http)
END
    hanji-auth.conf) try "$file" <<END ;;
        include conf.d/*.conf;
        $(auth_http)
        $listen include snippets/hanji-locations.conf; include snippets/hanji-auth.conf;
        location /private/ { set \$hanji_asks \$document_uri; auth_request /auth/check; error_page 401 /auth/login; } }
END
    hanji-params.conf) try "$file" <<END ;;
        include conf.d/*.conf;
        $listen location / { include snippets/hanji-params.conf; } }
END
    hanji-locations.conf) try "$file" <<END ;;
        include conf.d/*.conf;
        $listen include snippets/hanji-locations.conf; } 
END
    example-site.conf) try "$file" <<END ;;
        include conf.d/*.conf;
        $(site)
END
    lighttpd-hanji.conf) # for the other web server
        said=$(cd "$dir" && { echo 'server.document-root = "/var/empty"'; cat "$OLDPWD/$file"; } >lighttpd.conf &&
            lighttpd -tt -f lighttpd.conf 2>&1) && [ -z "$said" ] || { printf '%s:\n%s\n' "$file" "$said" >&2; failed=1; } ;;
    *)
        echo "nginx.sh: $file: say here in which surroundings it belongs" >&2
        failed=1
        ;;
    esac
done
exit $failed
